#!/bin/sh
# make demo: starts the server on the demo model, asks three of the sample pictures' questions over HTTP with streaming
# on, shows the memory at "ready" and at the end, and stops the server. The malloc interposer counts its heap calls.
set -eu
cd "$(dirname "$0")/.."
log=$(mktemp) server=""
trap '[ -z "$server" ] || kill "$server" 2>/dev/null || true; rm -f "$log"' EXIT INT TERM

# A free port: the server fails at once on a taken one, so try until it binds.
tries=0
while :; do
    port=$((20000 + ($$ * 7 + tries * 131) % 12000))
    LD_PRELOAD=build/tools/interposer.so build/ashlar serve --model-path demo/model --served-model-name ashlar-demo \
        --host 127.0.0.1 --port "$port" --max-source-pixels 4Mi --large-bodies 2 --large-body-bytes 8Mi >"$log" 2>&1 &
    server=$!
    until grep -q "ready to roll" "$log"; do
        kill -0 "$server" 2>/dev/null || break
        sleep 0.1
    done
    kill -0 "$server" 2>/dev/null && break
    tries=$((tries + 1))
    if [ "$tries" -ge 5 ]; then cat "$log" >&2; exit 1; fi
done
url=http://127.0.0.1:$port
cat "$log"

resident() { awk '/^RssAnon:/ {print $2 " KiB"}' "/proc/$server/status"; }
heap_calls() { curl -sS "$url/server_info" | jq -r .heap_calls_since_ready; }
at_ready=$(resident) heap_at_ready=$(heap_calls)

ask() { # picture question
    printf '\n%s\n  question: %s\n  answer:   ' "demo/samples/$1" "$2"
    { printf '{"model":"ashlar-demo","stream":true,"temperature":0,"messages":[{"role":"user","content":['
      printf '{"type":"image_url","image_url":{"url":"data:image/png;base64,%s"}},' "$(base64 -w0 "demo/samples/$1")"
      printf '{"type":"text","text":%s}]}]}' "$(printf '%s' "$2" | jq -Rs .)"
    } | curl -sS -N "$url/v1/chat/completions" -H 'Content-Type: application/json' --data-binary @- |
        sed -un 's/^data: \({.*\)/\1/p' | jq --unbuffered -j '.choices[0].delta.content // empty'
    echo
}
ask shapes.png "What is shown in the image?"
ask number.png "Which number can you see?"
ask number-and-shapes.png "Write the shapes as JSON."

echo
echo "resident memory (RssAnon)   at ready: $at_ready   at the end: $(resident)"
echo "heap calls since ready      at ready: $heap_at_ready   at the end: $(heap_calls)"
kill -TERM "$server"
wait "$server"
server=""
echo "The server stopped cleanly. Your turn: build/ashlar serve --model-path demo/model"
