/* Every refusal of a request, one row each. Data only, so no include guard: define ERR, include, done.
 *
 *     ERR(NAME, http_status, api_type, retryable, text)
 *
 * `text` is the fixed part of the message; request_refuse() appends the detail that names the field and the limit.
 * Included for: enum err, the answers.
 */
ERR(OK,                 200, "",                      0, "ok")
ERR(BAD_HTTP,           400, "BadRequestError",       0, "malformed HTTP request")
ERR(BAD_JSON,           400, "BadRequestError",       0, "malformed JSON body")
ERR(BAD_FIELD,          400, "BadRequestError",       0, "invalid field")
ERR(UNSUPPORTED,        400, "BadRequestError",       0, "not supported")
ERR(BAD_CONTENT_TYPE,   400, "BadRequestError",       0, "Content-Type must be application/json")
ERR(BAD_IMAGE,          400, "BadRequestError",       0, "invalid image")
ERR(TOO_MANY_IMAGES,    400, "BadRequestError",       0, "too many images")
ERR(CONTEXT_EXCEEDED,   400, "BadRequestError",       0, "the input is longer than the model's context length")
ERR(MAX_TOKENS_TOO_LARGE, 400, "BadRequestError",     0, "max_completion_tokens is too large")
ERR(BUSY,               400, "BadRequestError",       1, "requests are running or waiting")
ERR(UNAUTHORIZED,       401, "AuthenticationError",   0, "Unauthorized")
ERR(NOT_FOUND,          404, "NotFoundError",         0, "Not Found")
ERR(MODEL_NOT_FOUND,    404, "invalid_request_error", 0, "the model does not exist")
ERR(METHOD_NOT_ALLOWED, 405, "MethodNotAllowedError", 0, "Method Not Allowed")
ERR(TIMED_OUT,          408, "RequestTimeoutError",   1, "the request did not arrive in time")
ERR(BODY_TOO_LARGE,     413, "PayloadTooLargeError",  0, "the request body is too large")
ERR(TOO_DEEP,           413, "PayloadTooLargeError",  0, "the JSON is nested too deeply or too long")
ERR(EXPECTATION_FAILED, 417, "BadRequestError",       0, "unknown expectation")
ERR(HEAD_TOO_LARGE,     431, "BadRequestError",       0, "the request's headers are too large")
ERR(INTERNAL,           500, "InternalServerError",   0, "the model gave a value that is not a number")
ERR(NOT_IMPLEMENTED,    501, "BadRequestError",       0, "transfer coding not supported")
ERR(HTTP_VERSION,       505, "BadRequestError",       0, "HTTP version not supported")
ERR(QUEUE_FULL,         503, "ServiceUnavailableError", 1, "the request queue is full")
ERR(BODY_SLOTS_BUSY,    503, "ServiceUnavailableError", 1, "no slot for a large body came free in time")
ERR(TOO_MANY_CONNECTIONS, 503, "ServiceUnavailableError", 1, "too many connections")
ERR(SHUTTING_DOWN,      503, "ServiceUnavailableError", 1, "the server is shutting down")
ERR(UNHEALTHY,          503, "ServiceUnavailableError", 1, "the engine does not answer")
ERR(CLIENT_GONE,        499, "",                      0, "the client left")
#undef ERR
