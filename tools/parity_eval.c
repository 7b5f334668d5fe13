/* parity_eval: a model's evaluation set, from the picture file to the answer's ids. */
#include "tools/parity_eval.h"

#include "tests/model/case_run.h"
#include "tools/parity_text.h"

#include <assert.h>
#include <stdio.h>

enum { ANSWER_IDS_MAX = 256, PICTURES_MAX = 4, TEXT_MAX = 4096 };

struct question {
    uint32_t number;
    char kind[24];
    char pictures[PICTURES_MAX][160];
    uint32_t picture_count;
    int32_t prompt_ids[CASE_IDS_MAX];
    uint32_t prompt_count;
    int32_t answer_ids[ANSWER_IDS_MAX]; /* with the end token */
    uint32_t answer_count;
    struct json_span truth; /* unescaped */
    double margin;
    bool is_right;
};

struct tally {
    uint32_t questions, equal, right, recorded_right;
};

static uint32_t read_ids(struct json_reader *reader, int32_t *ids, uint32_t capacity)
{
    struct json_event event;
    uint32_t count = 0;
    golden_next(reader, &event);
    for (golden_next(reader, &event); event.kind == JSON_NUMBER; golden_next(reader, &event)) {
        int64_t id = 0;
        bool is_number = json_number_i64(event.text, event.bytes, &id);
        assert(is_number && count < capacity);
        (void)is_number;
        ids[count++] = (int32_t)id;
    }
    return count;
}

/* The pictures' files, in the order of the messages. */
static void read_messages(struct json_reader *reader, struct question *question)
{
    struct json_event event;
    uint32_t depth = 0;
    do {
        golden_next(reader, &event);
        depth += event.kind == JSON_OBJECT_BEGIN || event.kind == JSON_ARRAY_BEGIN ? 1 : 0;
        depth -= event.kind == JSON_OBJECT_END || event.kind == JSON_ARRAY_END ? 1 : 0;
        if (event.kind == JSON_KEY && json_event_is(&event, "url")) {
            golden_next(reader, &event);
            assert(question->picture_count < PICTURES_MAX);
            (void)snprintf(question->pictures[question->picture_count++], sizeof question->pictures[0], "%.*s",
                           (int)event.bytes, event.text);
        }
    } while (depth > 0);
}

static void read_question(struct json_reader *reader, struct question *question)
{
    struct json_event event;
    *question = (struct question){.number = 0};
    for (golden_next(reader, &event); event.kind == JSON_KEY; golden_next(reader, &event)) {
        if (json_event_is(&event, "id")) {
            question->number = golden_number(reader);
        } else if (json_event_is(&event, "kind")) {
            golden_next(reader, &event);
            (void)snprintf(question->kind, sizeof question->kind, "%.*s", (int)event.bytes, event.text);
        } else if (json_event_is(&event, "messages")) {
            read_messages(reader, question);
        } else if (json_event_is(&event, "prompt_ids")) {
            question->prompt_count = read_ids(reader, question->prompt_ids, CASE_IDS_MAX);
        } else if (json_event_is(&event, "answer_ids")) {
            question->answer_count = read_ids(reader, question->answer_ids, ANSWER_IDS_MAX);
        } else if (json_event_is(&event, "truth")) {
            golden_next(reader, &event);
            question->truth = (struct json_span){event.text, event.bytes};
        } else if (json_event_is(&event, "margin")) {
            golden_next(reader, &event);
            (void)json_number_f64(event.text, event.bytes, &question->margin);
        } else if (json_event_is(&event, "right")) {
            golden_next(reader, &event);
            question->is_right = event.kind == JSON_TRUE;
        } else {
            golden_skip(reader);
        }
    }
}

/* Encodes the pictures and expands the pads; false if a picture is refused. */
static bool make_prompt(struct rig *rig, const struct question *question, struct case_room *room,
                        struct rig_prompt *prompt)
{
    uint32_t merge = rig->checkpoint.dims[V_MERGE], count = 0, picture = 0;
    for (uint32_t i = 0; i < question->prompt_count; i++) {
        uint32_t copies = 1;
        if (question->prompt_ids[i] == rig->checkpoint.image_token_id) {
            struct image_grid grid;
            if (picture == question->picture_count ||
                !case_decode(room, question->pictures[picture], &rig->checkpoint.image, &grid)) {
                return false;
            }
            rig_encode(rig, room->rgb, grid.grid_h, grid.grid_w, picture);
            room->spans[picture++] = (struct position_span){count, grid.grid_h / merge, grid.grid_w / merge};
            copies = grid.token_count;
        }
        for (uint32_t k = 0; k < copies; k++) {
            assert(count < CASE_IDS_MAX - ANSWER_IDS_MAX);
            room->ids[count++] = question->prompt_ids[i];
        }
    }
    *prompt = (struct rig_prompt){room->ids, count, room->spans, picture};
    return picture == question->picture_count;
}

static bool is_end(const struct checkpoint *checkpoint, int32_t token)
{
    for (uint32_t i = 0; i < checkpoint->eos_count; i++) {
        if (checkpoint->eos_ids[i] == token) {
            return true;
        }
    }
    return false;
}

/* Answers greedily behind the prompt's ids; returns the answer's length, its end token counted. */
static uint32_t answer(struct rig *rig, struct case_room *room, const struct rig_prompt *prompt)
{
    for (uint32_t k = 0; k < ANSWER_IDS_MAX; k++) {
        float margin = 0;
        if (k == 0) {
            rig_prefill(rig, prompt, 0, RIG_ROWS_MAX);
        } else {
            rig_run(rig, prompt, 0, prompt->count + k - 1, 1, true);
        }
        room->ids[prompt->count + k] = rig_argmax(rig->logits, rig->checkpoint.vocab, &margin);
        if (is_end(&rig->checkpoint, room->ids[prompt->count + k])) {
            return k + 1;
        }
    }
    return ANSWER_IDS_MAX;
}

static void ask(struct rig *rig, const struct question *question, struct case_room *room, struct tally *tally)
{
    struct rig_prompt prompt;
    char text[TEXT_MAX];
    tally->questions++;
    tally->recorded_right += question->is_right ? 1 : 0;
    if (!make_prompt(rig, question, room, &prompt)) {
        (void)printf("FAIL question %u (%s): a picture is missing or refused\n", question->number, question->kind);
        return;
    }
    uint32_t count = answer(rig, room, &prompt);
    const int32_t *ids = room->ids + prompt.count;
    size_t bytes = parity_decode(ids, count, text, sizeof text);
    assert(question->answer_ids != NULL && question->truth.bytes != NULL);
    bool is_equal = count == question->answer_count && memcmp(ids, question->answer_ids, count * sizeof ids[0]) == 0;
    bool is_right = bytes == question->truth.length && memcmp(text, question->truth.bytes, bytes) == 0;
    tally->equal += is_equal ? 1 : 0;
    tally->right += is_right ? 1 : 0;
    if (!is_equal) {
        (void)printf("flip question %u (%s): the reference's margin is %.3f; here: %.*s\n", question->number,
                     question->kind, question->margin, (int)bytes, text);
    }
}

bool parity_eval(const char *folder, const char *model_folder, enum model_dtype dtype)
{
    static struct rig rig;
    static struct case_room room;
    static struct question question;
    struct tally tally = {0};
    struct json_reader reader;
    struct json_event event;
    char path[512];
    uint64_t bytes = 0;

    (void)snprintf(path, sizeof path, "%s/eval.json", folder);
    char *json = domain_file_map(path, &bytes);
    if (json == NULL) {
        (void)fprintf(stderr, "%s: cannot be read\n", path);
        return false;
    }
    rig_open(&rig, &(struct rig_setup){.folder = model_folder, .dtype = dtype});
    case_open_room(&room, folder, &rig.checkpoint.image);
    bool is_open = parity_open_tokenizer(model_folder, rig.checkpoint.vocab);
    json_open(&reader, json, (size_t)bytes);
    golden_next(&reader, &event);
    for (golden_next(&reader, &event); is_open && event.kind == JSON_KEY; golden_next(&reader, &event)) {
        if (!json_event_is(&event, "items")) {
            golden_skip(&reader);
            continue;
        }
        golden_next(&reader, &event);
        for (golden_next(&reader, &event); event.kind == JSON_OBJECT_BEGIN; golden_next(&reader, &event)) {
            read_question(&reader, &question);
            ask(&rig, &question, &room, &tally);
        }
    }
    rig_close(&rig);
    bool is_good = tally.questions > 0 && 100 * tally.equal >= 98 * tally.questions &&
                   100 * tally.right + tally.questions >= 100 * tally.recorded_right;
    (void)printf("%s %s, %s: %u of %u answers equal, %u right (recorded: %u)\n", is_good ? "ok  " : "FAIL", folder,
                 dtype == MODEL_F32 ? "float32" : "bfloat16", tally.equal, tally.questions, tally.right,
                 tally.recorded_right);
    return is_good;
}
