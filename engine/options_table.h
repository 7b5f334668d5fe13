/* Every flag, one row each. Data only, so no include guard: define OPTION, OPTION_ALIAS, OPTION_ENV, include, done.
 *
 *     OPTION(field, "--name", KIND, default, minimum, maximum, unit, STATUS, help)
 *     OPTION_ALIAS("--other", field)           another spelling of the same flag
 *     OPTION_ENV("NAME", field)                an environment variable that sets the field
 *
 * KIND     value, type in struct options
 *   SWITCH   none; bool
 *   COUNT    a whole number; int64_t
 *   TOKENS   a whole number, suffixes k M G Ki Mi Gi; int64_t
 *   BYTES    the same, in bytes; int64_t
 *   FRACTION a decimal number; double
 *   SECONDS  a decimal number of seconds; double
 *   TEXT     anything; const char *
 *   CHOICE   one of the words in `unit`, separated by |; const char *
 *   LIST     one word or more, until the next flag; the last is kept; const char *
 *   FILES    may be given several times, all are kept; struct option_files
 * minimum and maximum bound numbers, both included. A default of NULL, or of 0 out of range: chosen at start.
 * STATUS   WORKS, or IGNORED: accepted with one warning line, since it has no meaning here or not yet.
 * Included for: struct options, the parser, --help, the list of flags in /server_info.
 */

/* The model. */
OPTION(model_path, "--model-path", TEXT, NULL, 0, 0, "FOLDER", WORKS,
       "the model's folder (config.json, *.safetensors, tokenizer)")
OPTION_ALIAS("--model", model_path)
OPTION(tokenizer_path, "--tokenizer-path", TEXT, NULL, 0, 0, "FOLDER", WORKS,
       "folder of the tokenizer, if it is another")
OPTION_ALIAS("--tokenizer", tokenizer_path)
OPTION(served_model_name, "--served-model-name", TEXT, NULL, 0, 0, "NAME", WORKS,
       "id in /v1/models and in answers; default: the model path")
OPTION(context_length, "--context-length", TOKENS, 0, 1, 16777216, "TOKENS", WORKS,
       "longest prompt plus answer; default: the model's")
OPTION_ALIAS("--max-model-len", context_length)
OPTION(dtype, "--dtype", CHOICE, "auto", 0, 0, "auto|bfloat16|float32|half|float16|float", WORKS,
       "type of activations; auto: bfloat16")
OPTION(kv_cache_dtype, "--kv-cache-dtype", CHOICE, "auto", 0, 0, "auto|bf16|bfloat16|fp8_e5m2|fp8_e4m3", WORKS,
       "type of the KV cache; auto: as --dtype")
OPTION(load_format, "--load-format", CHOICE, "auto", 0, 0, "auto|safetensors|dummy", WORKS,
       "dummy: seeded random weights, no weight file is read")
OPTION(json_model_override_args, "--json-model-override-args", TEXT, NULL, 0, 0, "JSON", WORKS,
       "merged over config.json")
OPTION(quantization, "--quantization", TEXT, NULL, 0, 0, "METHOD", IGNORED,
       "weight quantization; the checkpoint's own is used")
OPTION(chat_template, "--chat-template", TEXT, NULL, 0, 0, "NAME", IGNORED, "the checkpoint's own template is used")
OPTION(trust_remote_code, "--trust-remote-code", SWITCH, false, 0, 0, "", IGNORED,
       "no code of a checkpoint is ever run")
OPTION(revision, "--revision", TEXT, NULL, 0, 0, "NAME", IGNORED, "models are local folders")
OPTION(download_dir, "--download-dir", TEXT, NULL, 0, 0, "FOLDER", IGNORED, "nothing is downloaded")
OPTION(model_impl, "--model-impl", TEXT, NULL, 0, 0, "NAME", IGNORED, "there is one implementation")
OPTION(tokenizer_mode, "--tokenizer-mode", CHOICE, "auto", 0, 0, "auto|slow", IGNORED, "there is one tokenizer")
OPTION(enable_multimodal, "--enable-multimodal", SWITCH, false, 0, 0, "", IGNORED,
       "pictures are on whenever the model has a tower")

/* The port. */
OPTION(host, "--host", TEXT, "127.0.0.1", 0, 0, "ADDRESS", WORKS, "numeric address to listen on")
OPTION(port, "--port", COUNT, 30000, 0, 65535, "PORT", WORKS, "port to listen on; 0: any free one, named in the log")
OPTION(api_key, "--api-key", TEXT, NULL, 0, 0, "KEY", WORKS, "clients must send it as Authorization: Bearer KEY")
OPTION(admin_api_key, "--admin-api-key", TEXT, NULL, 0, 0, "KEY", IGNORED,
       "there are no administrative routes behind a key of their own")
OPTION(large_bodies, "--large-bodies", COUNT, 4, 1, 4096, "COUNT", WORKS,
       "request bodies above 64 KiB that are held at once")
OPTION(large_body_bytes, "--large-body-bytes", BYTES, 33554432, 65536, 4294967295, "BYTES", WORKS,
       "longest request body; above: 413")
OPTION(header_timeout, "--header-timeout", SECONDS, 10, 0.001, 86400, "SECONDS", WORKS,
       "for the headers of a request to arrive")
OPTION(body_timeout, "--body-timeout", SECONDS, 30, 0.001, 86400, "SECONDS", WORKS, "without a byte of a body")
OPTION(body_wait, "--body-wait", SECONDS, 60, 0.001, 86400, "SECONDS", WORKS, "a large body waits for a slot")
OPTION(write_timeout, "--write-timeout", SECONDS, 60, 0.001, 86400, "SECONDS", WORKS,
       "a client takes no byte of its answer")
OPTION(keep_alive, "--keep-alive", SECONDS, 75, 0.001, 86400, "SECONDS", WORKS, "an idle connection stays open")
OPTION(shutdown_grace, "--shutdown-grace", SECONDS, 30, 0, 86400, "SECONDS", WORKS,
       "for running requests after SIGTERM")
OPTION(max_connections, "--max-connections", COUNT, 0, 1, 65536, "COUNT", WORKS,
       "open at once; default: 4 x (running + queued), at least 64")

/* Memory. */
OPTION(device, "--device", CHOICE, "auto", 0, 0, "auto|cpu|cuda", WORKS, "where the maths runs")
OPTION(device_memory, "--device-memory", BYTES, 0, 1048576, 1125899906842624, "BYTES", WORKS,
       "plan for this much memory instead of what is free")
OPTION(mem_fraction_static, "--mem-fraction-static", FRACTION, 0, 0.01, 1, "FRACTION", WORKS,
       "of the free memory that the plan may take; default 0.85, or 1 of --device-memory")
OPTION(max_total_tokens, "--max-total-tokens", TOKENS, 0, 16, 4294967295, "TOKENS", WORKS, "KV cache, at most")
OPTION(max_running_requests, "--max-running-requests", COUNT, 0, 1, 4096, "COUNT", WORKS,
       "computing at once; default 16 on a CPU, lowered until one context fits")
OPTION(max_queued_requests, "--max-queued-requests", COUNT, 0, 0, 65536, "COUNT", WORKS,
       "waiting; above: 503; default 4 x running")
OPTION(chunked_prefill_size, "--chunked-prefill-size", TOKENS, 0, -1, 1048576, "TOKENS", WORKS,
       "prompt tokens of one step; -1: the whole context; default 512 on a CPU")
OPTION(max_prefill_tokens, "--max-prefill-tokens", TOKENS, 16384, 1, 16777216, "TOKENS", WORKS,
       "prompt tokens of one step, whatever --chunked-prefill-size says")
OPTION(page_size, "--page-size", COUNT, 16, 1, 1024, "TOKENS", IGNORED, "KV pages hold 16 tokens")
OPTION(disable_radix_cache, "--disable-radix-cache", SWITCH, false, 0, 0, "", WORKS, "no prefix cache")
OPTION(radix_eviction_policy, "--radix-eviction-policy", CHOICE, "lru", 0, 0, "lru|lfu|slru|priority", IGNORED,
       "least recently used")
OPTION(vlm_cache_size_mb, "SGLANG_VLM_CACHE_SIZE_MB", COUNT, 100, 0, 1048576, "MiB", WORKS,
       "cache of encoded pictures")
OPTION_ENV("SGLANG_VLM_CACHE_SIZE_MB", vlm_cache_size_mb)
OPTION(allow_longer_context, "SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN", COUNT, 0, 0, 1, "0|1", WORKS,
       "--context-length above the model's own")
OPTION_ENV("SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN", allow_longer_context)
OPTION(cpu_offload_gb, "--cpu-offload-gb", COUNT, 0, 0, 1048576, "GB", IGNORED, "weights stay on the device")
OPTION(enable_memory_saver, "--enable-memory-saver", SWITCH, false, 0, 0, "", IGNORED, "the plan is never given back")

/* Pictures. */
OPTION(max_source_pixels, "--max-source-pixels", TOKENS, 67108864, 784, 4294836225, "PIXELS", WORKS,
       "largest picture before resizing; above: 400")
OPTION(mm_process_config, "--mm-process-config", TEXT, NULL, 0, 0, "JSON", WORKS,
       "{\"image\": {\"max_pixels\": N}} lowers the resolution and so the memory")
OPTION(limit_mm_data_per_request, "--limit-mm-data-per-request", TEXT, NULL, 0, 0, "JSON", WORKS,
       "{\"image\": N}; above: 400")
OPTION(keep_mm_feature_on_device, "--keep-mm-feature-on-device", SWITCH, false, 0, 0, "", WORKS,
       "always so: features lie in planned pages of the device")
OPTION(mm_feature_transport, "--mm-feature-transport", CHOICE, "cpu", 0, 0, "cpu|cuda_ipc|cuda_vmm", IGNORED,
       "features never leave the device")
OPTION(mm_io_worker_num, "--mm-io-worker-num", COUNT, 0, 0, 1024, "COUNT", IGNORED,
       "one picture is decoded at a time")
OPTION(mm_processor_worker_num, "--mm-processor-worker-num", COUNT, 0, 0, 1024, "COUNT", IGNORED,
       "one picture is resized at a time")
OPTION(image_processor_backend, "--image-processor-backend", CHOICE, "auto", 0, 0, "auto|torchvision|pil", IGNORED,
       "there is one, equal to the last bit to pil")
OPTION(disable_fast_image_processor, "--disable-fast-image-processor", SWITCH, false, 0, 0, "", IGNORED,
       "there is one, equal to the last bit to pil")
OPTION(mm_preprocess_cache_size_mb, "--mm-preprocess-cache-size-mb", COUNT, 0, 0, 1048576, "MiB", IGNORED,
       "features are cached, not pixels")
OPTION(trust_mm_content_hashes, "--trust-mm-content-hashes", SWITCH, false, 0, 0, "", IGNORED,
       "pictures are hashed here")
OPTION(allowed_media_domains, "--allowed-media-domains", LIST, NULL, 0, 0, "DOMAIN...", IGNORED,
       "nothing is downloaded")
OPTION(media_url_max_file_size_mb, "--media-url-max-file-size-mb", COUNT, 64, 0, 1048576, "MiB", IGNORED,
       "nothing is downloaded")
OPTION(mm_attention_backend, "--mm-attention-backend", TEXT, NULL, 0, 0, "NAME", IGNORED,
       "kernels are chosen by the machine")
OPTION(mm_enable_dp_encoder, "--mm-enable-dp-encoder", SWITCH, false, 0, 0, "", IGNORED, "one device")
OPTION(mm_max_concurrent_calls, "--mm-max-concurrent-calls", COUNT, 32, 1, 1048576, "COUNT", IGNORED,
       "one picture is encoded at a time")
OPTION(enable_broadcast_mm_inputs_process, "--enable-broadcast-mm-inputs-process", SWITCH, false, 0, 0, "", IGNORED,
       "one process")
OPTION(enable_prefix_mm_cache, "--enable-prefix-mm-cache", SWITCH, false, 0, 0, "", IGNORED,
       "encoded pictures are always cached")
OPTION(enable_mm_global_cache, "--enable-mm-global-cache", SWITCH, false, 0, 0, "", IGNORED, "one process")
OPTION(language_model_only, "--language-model-only", SWITCH, false, 0, 0, "", IGNORED, "the tower is always loaded")
OPTION(encoder_only, "--encoder-only", SWITCH, false, 0, 0, "", IGNORED, "one process serves both halves")
OPTION(language_only, "--language-only", SWITCH, false, 0, 0, "", IGNORED, "one process serves both halves")

/* Requests. */
OPTION(random_seed, "--random-seed", COUNT, 0, 0, 9007199254740991, "SEED", WORKS,
       "of the generator that seeds requests without a seed; default: drawn at start")
OPTION(allow_special_tokens_in_text, "--allow-special-tokens-in-text", SWITCH, false, 0, 0, "", WORKS,
       "a user's <|im_end|> becomes the special token")
OPTION(enable_cache_report, "--enable-cache-report", SWITCH, false, 0, 0, "", WORKS, "cached tokens in usage")
OPTION(sampling_defaults, "--sampling-defaults", CHOICE, "model", 0, 0, "model|openai", WORKS,
       "values of a request that names none: generation_config.json's or the API's")
OPTION(preferred_sampling_params, "--preferred-sampling-params", TEXT, NULL, 0, 0, "JSON", IGNORED, "not merged")
OPTION(allow_auto_truncate, "--allow-auto-truncate", SWITCH, false, 0, 0, "", IGNORED,
       "a prompt over the context is 400")
OPTION(tool_call_parser, "--tool-call-parser", TEXT, NULL, 0, 0, "NAME", IGNORED, "tool calls are not parsed yet")
OPTION(reasoning_parser, "--reasoning-parser", TEXT, NULL, 0, 0, "NAME", IGNORED, "reasoning is not parsed yet")
OPTION(grammar_backend, "--grammar-backend", TEXT, NULL, 0, 0, "NAME", IGNORED, "grammars are not supported yet")
OPTION(stream_interval, "--stream-interval", COUNT, 1, 1, 1048576, "TOKENS", IGNORED,
       "each token is sent as soon as the socket takes it")
OPTION(incremental_streaming_output, "--incremental-streaming-output", SWITCH, false, 0, 0, "", IGNORED,
       "the route it is for is not served")
OPTION_ALIAS("--stream-output", incremental_streaming_output)

/* The engine. */
OPTION(threads, "--threads", COUNT, 0, 1, THREADS_MAX, "COUNT", WORKS,
       "compute threads; default: the CPUs that we may use")
OPTION(step_budget_ms, "--step-budget-ms", COUNT, 0, 1, 60000, "MS", WORKS,
       "prompt and picture work of a step while text is streaming")
OPTION(tp_size, "--tp-size", COUNT, 1, 1, 1, "COUNT", WORKS, "tensor parallel devices")
OPTION_ALIAS("--tp", tp_size)
OPTION_ALIAS("--tensor-parallel-size", tp_size)
OPTION(dp_size, "--dp-size", COUNT, 1, 1, 1, "COUNT", WORKS, "data parallel replicas")
OPTION_ALIAS("--dp", dp_size)
OPTION_ALIAS("--data-parallel-size", dp_size)
OPTION(pp_size, "--pp-size", COUNT, 1, 1, 1, "COUNT", WORKS, "pipeline parallel devices")
OPTION_ALIAS("--pipeline-parallel-size", pp_size)
OPTION(nnodes, "--nnodes", COUNT, 1, 1, 1, "COUNT", WORKS, "machines of one server")
OPTION(node_rank, "--node-rank", COUNT, 0, 0, 0, "INDEX", IGNORED, "one machine")
OPTION(dist_init_addr, "--dist-init-addr", TEXT, NULL, 0, 0, "ADDRESS", IGNORED, "one process")
OPTION(nccl_port, "--nccl-port", COUNT, 0, 0, 65535, "PORT", IGNORED, "one process")
OPTION(base_gpu_id, "--base-gpu-id", COUNT, 0, 0, 1023, "INDEX", IGNORED, "there is one device")
OPTION(disable_custom_all_reduce, "--disable-custom-all-reduce", SWITCH, false, 0, 0, "", IGNORED, "one device")
OPTION(enable_p2p_check, "--enable-p2p-check", SWITCH, false, 0, 0, "", IGNORED, "one device")
OPTION(schedule_policy, "--schedule-policy", CHOICE, "fcfs", 0, 0,
       "lpm|random|fcfs|dfs-weight|lof|priority|routing-key", IGNORED,
       "first come, first served")
OPTION(schedule_conservativeness, "--schedule-conservativeness", FRACTION, 1, 0, 1000, "FACTOR", IGNORED,
       "admission is exact")
OPTION(enable_mixed_chunk, "--enable-mixed-chunk", SWITCH, false, 0, 0, "", IGNORED, "steps are always mixed")
OPTION(disable_overlap_schedule, "--disable-overlap-schedule", SWITCH, false, 0, 0, "", IGNORED, "one scheduler")
OPTION(attention_backend, "--attention-backend", TEXT, NULL, 0, 0, "NAME", IGNORED,
       "kernels are chosen by the machine")
OPTION(sampling_backend, "--sampling-backend", TEXT, NULL, 0, 0, "NAME", IGNORED, "one sampler")
OPTION(prefill_attention_backend, "--prefill-attention-backend", TEXT, NULL, 0, 0, "NAME", IGNORED,
       "kernels are chosen by the machine")
OPTION(decode_attention_backend, "--decode-attention-backend", TEXT, NULL, 0, 0, "NAME", IGNORED,
       "kernels are chosen by the machine")
OPTION(num_continuous_decode_steps, "--num-continuous-decode-steps", COUNT, 1, 1, 1048576, "STEPS", IGNORED,
       "whoever comes is looked at before each step")
OPTION(enable_torch_compile, "--enable-torch-compile", SWITCH, false, 0, 0, "", IGNORED,
       "nothing is compiled at run time")
OPTION(torch_compile_max_bs, "--torch-compile-max-bs", COUNT, 32, 1, 65536, "COUNT", IGNORED,
       "nothing is compiled at run time")
OPTION(enable_deterministic_inference, "--enable-deterministic-inference", SWITCH, false, 0, 0, "", IGNORED,
       "always so on a CPU")
OPTION(cuda_graph_max_bs, "--cuda-graph-max-bs", COUNT, 0, 0, 65536, "COUNT", IGNORED, "there are no graphs on a CPU")
OPTION_ALIAS("--cuda-graph-max-bs-decode", cuda_graph_max_bs)
OPTION(cuda_graph_bs, "--cuda-graph-bs", LIST, NULL, 0, 0, "COUNT...", IGNORED, "there are no graphs on a CPU")
OPTION(disable_cuda_graph, "--disable-cuda-graph", SWITCH, false, 0, 0, "", IGNORED, "there are no graphs on a CPU")
OPTION(skip_server_warmup, "--skip-server-warmup", SWITCH, false, 0, 0, "", IGNORED,
       "every op is warmed before ready")
OPTION(watchdog_timeout, "--watchdog-timeout", SECONDS, 300, 0, 86400, "SECONDS", WORKS,
       "a step that lasts longer makes /health answer 503; 0: never")
OPTION(crash_dump_folder, "--crash-dump-folder", TEXT, NULL, 0, 0, "FOLDER", IGNORED, "requests are not kept")
OPTION(gc_threshold, "--gc-threshold", LIST, NULL, 0, 0, "COUNT...", IGNORED, "there is no garbage")
OPTION(gc_warning_threshold_secs, "--gc-warning-threshold-secs", SECONDS, 0, 0, 86400, "SECONDS", IGNORED,
       "there is no garbage")

/* What is told. */
OPTION(log_level, "--log-level", CHOICE, "info", 0, 0, "debug|info|warning|warn|error|critical", WORKS,
       "least level that is logged")
OPTION(log_level_http, "--log-level-http", CHOICE, NULL, 0, 0, "debug|info|warning|warn|error|critical", IGNORED,
       "one level for all")
OPTION(log_requests, "--log-requests", SWITCH, false, 0, 0, "", IGNORED,
       "one line a request at level info; never its text")
OPTION(log_requests_level, "--log-requests-level", COUNT, 2, 0, 3, "LEVEL", IGNORED,
       "one line a request at level info; never its text")
OPTION(log_requests_format, "--log-requests-format", CHOICE, "text", 0, 0, "text|json", IGNORED, "key=value")
OPTION(decode_log_interval, "--decode-log-interval", COUNT, 40, 1, 1048576, "STEPS", WORKS,
       "decode steps between two log lines")
OPTION(enable_metrics, "--enable-metrics", SWITCH, false, 0, 0, "", WORKS, "serve /metrics")
OPTION(enable_metrics_for_all_schedulers, "--enable-metrics-for-all-schedulers", SWITCH, false, 0, 0, "", IGNORED,
       "one scheduler")

/* ashlar ask, ashlar plan. */
OPTION(image, "--image", FILES, {.count = 0}, 0, 0, "FILE", WORKS, "ask: a picture to ask about; may be repeated")
OPTION(json, "--json", SWITCH, false, 0, 0, "", WORKS, "ask, plan: the result as JSON")
OPTION(max_tokens, "--max-tokens", TOKENS, 0, 1, 16777216, "TOKENS", WORKS,
       "ask: longest answer; default: up to the context")
OPTION(temperature, "--temperature", FRACTION, 0, 0, 2, "NUMBER", WORKS, "ask: 0 is greedy")

#undef OPTION
#undef OPTION_ALIAS
#undef OPTION_ENV
