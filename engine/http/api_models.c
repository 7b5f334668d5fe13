/* api_models: GET /v1/models and GET /v1/models/{id}. */
#include "engine/http/api.h"

#include "engine/http/http_server.h"
#include "engine/json_out.h"

#include <assert.h>

static void write_card(struct json_out *json, const struct http_facts *facts)
{
    json_out_object_begin(json);
    json_out_key_text(json, "id", facts->model_name);
    json_out_key_text(json, "object", "model");
    json_out_key_i64(json, "created", (int64_t)facts->started_unix_s);
    json_out_key_text(json, "owned_by", "ashlar");
    json_out_key_text(json, "root", facts->model_name);
    json_out_key(json, "parent");
    json_out_null(json);
    json_out_key_i64(json, "max_model_len", facts->context_tokens);
    json_out_object_end(json);
}

bool api_model_piece(struct http_server *server, struct api_reply *reply, uint32_t index, char *out, size_t *length)
{
    struct json_out json;

    (void)reply;
    json_out_open(&json, out, API_PIECE_BYTES_MAX);
    write_card(&json, &server->facts);
    assert(json_out_is_whole(&json));
    *length = json.length;
    return index == 0;
}

bool api_models_piece(struct http_server *server, struct api_reply *reply, uint32_t index, char *out, size_t *length)
{
    struct json_out json;

    (void)reply;
    json_out_open(&json, out, API_PIECE_BYTES_MAX);
    json_out_object_begin(&json);
    json_out_key_text(&json, "object", "list");
    json_out_key(&json, "data");
    json_out_array_begin(&json);
    write_card(&json, &server->facts);
    json_out_array_end(&json);
    json_out_object_end(&json);
    assert(json_out_is_whole(&json));
    *length = json.length;
    return index == 0;
}
