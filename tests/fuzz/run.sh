#!/bin/sh
# Runs fuzz targets one after the other.  Usage: tests/fuzz/run.sh SECONDS PROGRAM...
# Seeds come from tests/data; what is found on the way stays in build/fuzz/corpus for the next run.
set -eu
images=tests/data/images
seconds=$1
shift
passed=0 failed=0

seeds() {
    case "$1" in
    json) echo tests/data/json/JSONTestSuite/test_parsing ;;
    image) echo $images/pngsuite $images/pillow $images/jpeg-decoder/crashtest $images/png-bugfixes ;;
    *) ;;
    esac
}

# Targets whose files are no ready corpus get a few lines each.
plant() {
    case "$1" in
    data_url)
        printf 'data:image/png;base64,iVBORw0KGgo=' >"$2/seed-png"
        printf 'data:image/jpeg;charset=utf-8;base64, /9j/ 4AAQ\n' >"$2/seed-jpeg"
        printf 'https://example.com/x.png' >"$2/seed-http"
        ;;
    head)
        printf 'POST /v1/x HTTP/1.1\r\nHost: x\r\nContent-Length: 12\r\nExpect: 100-continue\r\n\r\n' >"$2/seed-post"
        printf 'GET /h?x=%%41 HTTP/1.0\r\nConnection: keep-alive\r\nAuthorization: Bearer k\r\n\r\n' >"$2/seed-get"
        printf 'OPTIONS * HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n' >"$2/seed-options"
        ;;
    body) printf 'x5;a=b\r\nhello\r\n0\r\nTrailer: x\r\n\r\n' >"$2/seed-chunks" ;;
    request)
        for field in '"temperature":0.5' '"stop":["a"]' '"logit_bias":{"5":1}' '"tool_choice":{"type":"function"}' \
            '"response_format":{"type":"text"}' '"tools":[{"type":"function","function":{"name":"f"}}]' '"n":1' \
            '"stream_options":{"include_usage":true}' '"max_tokens":5' '"chat_template_kwargs":{}' '"regex":null'; do
            seed=$(printf '%s' "$field" | tr -dc 'a-z_' | cut -c1-20)
            printf '{"model":"x","messages":[{"role":"user","content":[{"type":"text","text":"a"}]}],%s}' "$field" \
                >"$2/seed-$seed"
        done
        part='{"type":"image_url","image_url":{"url":"data:image/png;base64,%s"}}'
        printf '{"messages":[{"role":"user","content":['"$part" \
            "$(base64 -w0 $images/pngsuite/basn0g01.png)" >"$2/seed-picture"
        printf ']},{"role":"tool","content":"x"}]}' >>"$2/seed-picture"
        ;;
    safetensors)
        printf '\070\0\0\0\0\0\0\0{"a":{"dtype":"F32","shape":[1,1],"data_offsets":[0,4]}}abcd' >"$2/seed-one"
        head -c 65536 demo/model/model.safetensors >"$2/seed-demo"
        ;;
    tokenizer) printf "It's 42 <|im_end|> na\303\257ve \344\270\226\347\225\214\n\n  x" >"$2/seed-text" ;;
    chat)
        printf '\001user\002Hello\003\002<|im_end|>\001assistant\002ok\004[{"type":"function"}]' >"$2/seed-chat"
        ;;
    *) ;;
    esac
}

for program in "$@"; do
    name=$(basename "$program")
    name=${name#fuzz_}
    corpus=build/fuzz/corpus/$name
    mkdir -p "$corpus"
    plant "$name" "$corpus"
    # shellcheck disable=SC2046
    if "$program" -max_total_time="$seconds" -max_len=65536 -timeout=10 -rss_limit_mb=2048 -verbosity=0 \
        -artifact_prefix="build/fuzz/$name-" "$corpus" $(seeds "$name"); then
        passed=$((passed + 1))
        echo "fuzz_$name: no finding in $seconds s"
    else
        failed=$((failed + 1))
        echo "fuzz_$name: FAILED; see build/fuzz/$name-*"
    fi
done
echo "fuzz: $passed passed, $failed failed"
[ "$failed" -eq 0 ]
