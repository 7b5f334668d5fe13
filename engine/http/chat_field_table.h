/* Every field of a chat request that means something here, one row each. Data only, so no include guard: define
 * FIELD_NUMBER, FIELD_WHOLE, FIELD_SWITCH, FIELD_OWN, FIELD_REFUSED, include, done.
 *
 *     FIELD_NUMBER("name", place, minimum, maximum, is_open, "range")   a float; is_open: the minimum itself is out
 *     FIELD_WHOLE("name", place, minimum, maximum, "range")             a whole number (5 and 5.0) into int64_t
 *     FIELD_SWITCH("name", place)                                       true or false
 *     FIELD_OWN("name", function)                                       a reader of its own in chat_request.c
 *     FIELD_REFUSED("name", "why")                                      null, false and 0 are fine, anything else is 400
 *
 * `place` uses `r` (struct request) or `p` (struct chat_parse). null is "not given" for every row. Fields without a row are
 * ignored, whatever they hold, as SGLang does. Included for: the reader, the README's table.
 */
FIELD_OWN("messages", read_messages)
FIELD_OWN("model", read_model)
FIELD_OWN("stream_options", read_stream_options)
FIELD_OWN("stop", read_stop)
FIELD_OWN("stop_token_ids", read_stop_token_ids)
FIELD_OWN("logit_bias", read_logit_bias)
FIELD_OWN("tools", read_tools)
FIELD_OWN("tool_choice", read_tool_choice)
FIELD_OWN("response_format", read_response_format)
FIELD_OWN("chat_template_kwargs", read_template_kwargs)

FIELD_NUMBER("temperature", r->sampling.temperature, 0, FLT_MAX, false, "at least 0")
FIELD_NUMBER("top_p", r->sampling.top_p, 0, 1, true, "in (0, 1]")
FIELD_NUMBER("min_p", r->sampling.min_p, 0, 1, false, "in [0, 1]")
FIELD_NUMBER("repetition_penalty", r->sampling.repetition_penalty, 0, 2, true, "in (0, 2]")
FIELD_NUMBER("frequency_penalty", r->sampling.frequency_penalty, -2, 2, false, "in [-2, 2]")
FIELD_NUMBER("presence_penalty", r->sampling.presence_penalty, -2, 2, false, "in [-2, 2]")

FIELD_WHOLE("top_k", p->top_k, -1, INT32_MAX, "-1 or at least 1")
FIELD_WHOLE("seed", p->seed, INT64_MIN, INT64_MAX, "a whole number of 64 bits")
FIELD_WHOLE("max_tokens", p->max_tokens, 1, INT32_MAX, "at least 1")
FIELD_WHOLE("max_completion_tokens", p->max_completion_tokens, 1, INT32_MAX, "at least 1")
FIELD_WHOLE("min_tokens", p->min_tokens, 0, INT32_MAX, "at least 0")
FIELD_WHOLE("n", p->choices, 1, INT32_MAX, "at least 1")
FIELD_WHOLE("top_logprobs", p->top_logprobs, 0, 20, "in [0, 20]")

FIELD_SWITCH("stream", r->is_stream)
FIELD_SWITCH("ignore_eos", r->sampling.ignore_eos)
FIELD_SWITCH("no_stop_trim", r->no_stop_trim)
FIELD_SWITCH("skip_special_tokens", r->skip_special_tokens)
FIELD_SWITCH("logprobs", p->wants_logprobs)

FIELD_REFUSED("regex", "grammars are not supported")
FIELD_REFUSED("ebnf", "grammars are not supported")
FIELD_REFUSED("structural_tag", "grammars are not supported")
FIELD_REFUSED("stop_regex", "use stop or stop_token_ids")
FIELD_REFUSED("continue_final_message", "the answer always is a message of its own")
FIELD_REFUSED("return_hidden_states", "hidden states are not returned")
FIELD_REFUSED("input_ids", "send messages")
FIELD_REFUSED("lora_path", "adapters are not served")
FIELD_REFUSED("custom_logit_processor", "no code of a client is run")
FIELD_REFUSED("session_params", "send the whole conversation; its prefix is cached")
#undef FIELD_NUMBER
#undef FIELD_WHOLE
#undef FIELD_SWITCH
#undef FIELD_OWN
#undef FIELD_REFUSED
