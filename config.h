/* config: every limit that is not a flag, with its unit and its reason. Other files derive from these alone. */
#ifndef CONFIG_H
#define CONFIG_H

#define ASHLAR_VERSION "0.1.0"

enum {
    /* KV cache and picture features. */
    KV_PAGE_TOKENS = 16, /* tokens a KV page; also the key block of every attention kernel */
    MM_PAGE_TOKENS = 64, /* picture tokens a feature page */

    /* HTTP. */
    HEAD_BYTES_MAX = 16 * 1024,        /* request line and headers */
    HEAD_FIELDS_MAX = 100,             /* header lines */
    BODY_SMALL_BYTES = 64 * 1024,      /* bodies up to here never wait for a large slot */
    CONN_WRITE_BYTES = 16 * 1024,      /* write ring of a connection */
    CHUNK_LINE_BYTES_MAX = 256,        /* size line of a chunk, extensions included */
    BODY_READ_BYTES_MAX = 256 * 1024,  /* taken from one socket before the next one is looked at */
    UPLOAD_SMALL_BYTES_S_MIN = 256,    /* bytes a second that a small body must bring, beyond --body-timeout */
    UPLOAD_LARGE_BYTES_S_MIN = 16 * 1024, /* and a large one: slots are few */
    DOWNLOAD_BYTES_S_MIN = 256,        /* bytes a second that a reader must take, beyond --write-timeout */
    LINGER_MS = 5000,                  /* at most, after an answer that ends the connection */
    LINGER_IDLE_MS = 2000,             /* at most, without a byte */
    LINGER_TOO_MANY_MS = 500,          /* at most, for the one connection too many */
    HEALTH_WAIT_MS = 20000,            /* for one generated token, then /health_generate says 503 */
    HEALTH_POLL_MS = 5,                /* between two looks at it */
    LIST_REST_MS = 20,                 /* between two parts of the list of holders, for the writer of the log */
    KEEP_ALIVE_PROBE_S = 60,           /* silence after which the kernel asks whether the client's host still lives */
    SERVED_NAME_BYTES_MAX = 900,       /* --served-model-name; its card is one piece even if all of it is escaped */
    ACCEPT_REST_MS = 50,               /* after accept found no descriptor or no element */
    CUT_WAIT_MS = 5000,                /* for the engine and the sockets after the shutdown grace */
    SOCKET_SEND_BYTES = 64 * 1024,     /* asked of the kernel, which doubles it: its memory is bounded, too */
    SOCKET_RECEIVE_BYTES = 256 * 1024, /* more, for uploads over long ways */
    LISTEN_BACKLOG = 4096,             /* the kernel cuts it to its own limit */

    /* JSON. */
    JSON_DEPTH_MAX = 64,               /* nesting; a counter, not a call depth */
    JSON_NUMBER_BYTES_MAX = 256,       /* longest number literal */

    /* Tokenizer. */
    TOKEN_BYTES_MAX = 512,             /* bytes of one token */
    VOCAB_TEXT_BYTES_MEAN = 16,        /* bytes a token that are planned (Qwen2: 6.4) */
    ADDED_TOKENS_MAX = 256,            /* tokens beside the merged ones: <|im_start|> and so on */

    /* Chat requests. */
    MESSAGES_MAX = 1024,               /* messages a request */
    PARTS_MAX = 2048,                  /* content parts a request, all messages together */
    IMAGES_MAX = 64,                   /* pictures a request, before --limit-mm-data-per-request */
    PROMPT_RANGES_MAX = 8192,          /* pieces of a prompt by the template: two a message, one a part or call */
    STOP_STRINGS_MAX = 8,              /* stop strings a request */
    STOP_BYTES_MAX = 256,              /* bytes of one stop string */
    STOP_IDS_MAX = 32,                 /* stop_token_ids a request */
    LOGIT_BIAS_MAX = 300,              /* logit_bias entries a request */
    MODEL_NAME_BYTES_MAX = 256,        /* the echoed `model` */
    ERROR_DETAIL_BYTES_MAX = 512,      /* text of one refusal */

    /* Pictures. */
    JPEG_SCANS_MAX = 100,              /* progressive scans */
    IMAGE_EDGE_MAX = 65535,            /* pixels an edge */

    /* Threads and log. */
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
    STACK_BYTES = 4 * 1024 * 1024,     /* their frames and records are larger */
#else
    STACK_BYTES = 512 * 1024,          /* stack of each of our threads */
#endif
    THREADS_MAX = 64,                  /* compute threads */
    LOG_LINE_BYTES_MAX = 1024,
    LOG_LINES_MAX = 256,
    LOG_SLOT_BYTES = LOG_LINE_BYTES_MAX + 64, /* a queued line: its text, length and turn */

    /* Model shapes that the tables and kernels are built for. */
    LAYERS_MAX = 128,
    HEAD_DIM_MAX = 256,
    VISION_BLOCKS_MAX = 64,            /* a bit each in checkpoint.full_blocks */
    VISION_PATCH_MAX = 32,             /* pixels a patch edge */
    VISION_MERGE_MAX = 4,              /* patches a merged token's edge */
    VISION_WINDOW_MAX = 1024,          /* pixels a window edge */
    SHARDS_MAX = 256,                  /* safetensors files of one model */
    PATH_BYTES_MAX = 4096,             /* a model folder and a file name in it */
    IGNORED_TENSORS_MAX = 512,         /* tensors of a checkpoint that the reference ignores, too */
    EOS_IDS_MAX = 8,
    STAGE_BYTES = 32 * 1024 * 1024,    /* largest file that is read whole at start (tokenizer.json) */
};

#endif
