/* Every route, one row each. Data only, so no include guard: define ROUTE, include, done.
 *
 *     ROUTE(NAME, methods, path, needs_key, has_body)
 *
 * `methods` are the route's own; HEAD comes with GET, and OPTIONS with everything. A path that ends with '*' matches
 * whatever is longer. needs_key: answered 401 without the --api-key. has_body: takes a JSON body, and a REQUEST with it.
 * Included for: enum route, the lookup, the names in the log.
 */
ROUTE(CHAT,            METHOD_POST,              "/v1/chat/completions", true,  true)
ROUTE(MODELS,          METHOD_GET,               "/v1/models",           true,  false)
ROUTE(MODEL,           METHOD_GET,               "/v1/models/*",         true,  false)
ROUTE(HEALTH,          METHOD_GET,               "/health",              false, false)
ROUTE(HEALTH_GENERATE, METHOD_GET,               "/health_generate",     false, false)
ROUTE(MODEL_INFO,      METHOD_GET,               "/model_info",          true,  false)
ROUTE(GET_MODEL_INFO,  METHOD_GET,               "/get_model_info",      true,  false)
ROUTE(SERVER_INFO,     METHOD_GET,               "/server_info",         true,  false)
ROUTE(GET_SERVER_INFO, METHOD_GET,               "/get_server_info",     true,  false)
ROUTE(METRICS,         METHOD_GET,               "/metrics",             false, false)
ROUTE(POOLS,           METHOD_GET,               "/pools",               true,  false)
ROUTE(FLUSH_CACHE,     METHOD_GET | METHOD_POST, "/flush_cache",         true,  false)
ROUTE(PING,            METHOD_GET,               "/ping",                true,  false)
ROUTE(ROOT,            METHOD_GET,               "/",                    true,  false)
#undef ROUTE
