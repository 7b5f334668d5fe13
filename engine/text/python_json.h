/* python_json: writes JSON the way the reference's templates do, which are rendered by Python. */
#ifndef ENGINE_TEXT_PYTHON_JSON_H
#define ENGINE_TEXT_PYTHON_JSON_H

#include "engine/json.h"
#include "engine/text/prompt.h"

enum python_form {
    PYTHON_TOJSON, /* the filter `tojson`: {"a": [1, true], "b": null} */
    PYTHON_STR,    /* an object printed: {'a': [1, True], 'b': None} */
};

/* Appends the value `json` to the prompt as the client's text. Keys keep their order, text is not made ASCII, numbers
 * take Python's form (1e3 becomes 1000.0). The span is not changed. ERR_BAD_JSON, ERR_TOO_DEEP: as json_next. */
ERR_CHECKED enum err python_json_put(struct prompt *prompt, struct json_span json, enum python_form form);

#endif
