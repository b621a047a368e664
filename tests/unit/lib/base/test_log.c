/* SPDX-License-Identifier: Apache-2.0 */
#include "rows.h"

#include <time.h>
#include <unistd.h>

#include "gpushare/base/log.h"
#include "gpushare/base/num.h"

enum { FLOOD = 20000 };

static char output[FLOOD * 80];
static int evaluated;

static int count_evaluation(void)
{
    return ++evaluated;
}

/* What a function writes to stderr; returned until the next call. */
static const char *capture(void (*speak)(const void *ctx), const void *ctx)
{
    FILE *file = tmpfile();
    assert_non_null(file);
    int saved = dup(STDERR_FILENO);
    dup2(fileno(file), STDERR_FILENO);
    speak(ctx);
    dup2(saved, STDERR_FILENO);
    close(saved);
    ssize_t len = pread(fileno(file), output, sizeof(output) - 1, 0);
    assert_true(len >= 0);
    output[len] = '\0';
    fclose(file);
    return output;
}

/* The line behind its time stamp; fails when the time has another form. */
static const char *behind_time(const char *line, const char *before, const char *after)
{
    static const char form[] = "dddd-dd-ddTdd:dd:dd.dddZ";
    size_t at = strlen(before);
    assert_memory_equal(line, before, at);
    for (size_t i = 0; form[i]; i++, at++) {
        if (form[i] == 'd')
            assert_in_range(line[at], '0', '9');
        else
            assert_int_equal(line[at], form[i]);
    }
    assert_memory_equal(line + at, after, strlen(after));
    return line + at + strlen(after);
}

struct value_row {
    const char *row;
    const char *value;
    const char *text; /* in key=value form */
    const char *json;
};

static const struct value_row values[] = {
    {"plain word", "default/p-1", "default/p-1", "\"default/p-1\""},
    {"empty", "", "\"\"", "\"\""},
    {"missing", NULL, "\"\"", "\"\""},
    {"space", "a b", "\"a b\"", "\"a b\""},
    {"equals sign", "a=b", "\"a=b\"", "\"a=b\""},
    {"quotes", "\"x\"", "\"\\\"x\\\"\"", "\"\\\"x\\\"\""},
    {"a second line cannot be forged", "x\nlevel=error", "\"x\\nlevel=error\"",
     "\"x\\nlevel=error\""},
    {"invalid UTF-8", "\xFF", "\"\xEF\xBF\xBD\"", "\"\xEF\xBF\xBD\""},
    {"CSI in one character",
     "a\xC2\x9B"
     "31m",
     "\"a\\u009b31m\"", "\"a\\u009b31m\""},
    {"right to left", "\xE2\x80\xAE", "\"\\u202e\"", "\"\\u202e\""},
    {"percent", "50%s", "50%s", "\"50%s\""},
};

static void say_value(const void *ctx)
{
    gs_log(GS_LOG_INFO, "hello there", GS_STR("v", (const char *)ctx), GS_INT("n", -7));
}

static void values_are_quoted_when_needed(void **state)
{
    char expected[300];
    GS_FOR_EACH_ROW (r, values) {
        gs_log_init(GS_LOG_INFO, GS_LOG_TEXT);
        const char *line = behind_time(capture(say_value, r->value), "time=", " level=info ");
        snprintf(expected, sizeof(expected), "msg=\"hello there\" v=%s n=-7\n", r->text);
        row_text(r->row, line, expected);

        gs_log_init(GS_LOG_INFO, GS_LOG_JSON);
        line = behind_time(capture(say_value, r->value), "{\"time\":\"", "\",\"level\":\"info\",");
        snprintf(expected, sizeof(expected), "\"msg\":\"hello there\",\"v\":%s,\"n\":-7}\n",
                 r->json);
        row_text(r->row, line, expected);
    }
}

static void say_at_every_level(const void *ctx)
{
    gs_log(GS_LOG_ERROR, "e", GS_INT("n", count_evaluation()));
    gs_log(GS_LOG_WARN, "w", GS_INT("n", count_evaluation()));
    gs_log(GS_LOG_INFO, "i", GS_INT("n", count_evaluation()));
    gs_log(GS_LOG_DEBUG, "d", GS_INT("n", count_evaluation()));
}

static void say_flood(const void *level)
{
    gs_log(*(const enum gs_log_level *)level, "flood");
}

static void flood(const void *level)
{
    for (int i = 0; i < FLOOD; i++)
        say_flood(level);
}

static int count_lines(const char *text)
{
    int lines = 0;
    for (; *text; text++)
        lines += *text == '\n';
    return lines;
}

/* Of all its lines together: in a flood that takes longer some of it is told in between. */
static int count_suppressed(const char *text)
{
    static const char word[] = " suppressed=";
    int sum = 0;
    for (text = strstr(text, word); text; text = strstr(text, word)) {
        uint32_t number = 0;
        text += sizeof(word) - 1;
        assert_true(gs_parse_u32(text, strcspn(text, " \n"), &number));
        sum += (int)number;
    }
    return sum;
}

/* Of each message by itself; what was not written is counted. */
static void a_flood_of_one_message_is_held_back(void **state)
{
    static const struct {
        const char *row;
        enum gs_log_level level;
        bool held;
    } rows[] = {{"warnings", GS_LOG_WARN, true}, {"all of it was asked for", GS_LOG_DEBUG, false}};
    GS_FOR_EACH_ROW (r, rows) {
        gs_log_init(GS_LOG_DEBUG, GS_LOG_TEXT);
        const char *line = capture(flood, &r->level);
        int written = count_lines(line), suppressed = count_suppressed(line);
        row_true(r->row, r->held ? written >= 200 && written < FLOOD : written == FLOOD);
        nanosleep(&(struct timespec){.tv_nsec = 200000000}, NULL); /* room for some */
        line = capture(say_flood, &r->level);
        row_equal(r->row, strstr(line, " suppressed=") != NULL, r->held);
        row_equal(r->row, suppressed + count_suppressed(line), FLOOD - written);
        line = capture(say_flood, &r->level);
        row_true(r->row, count_lines(line) == 1 && !strstr(line, "suppressed"));
        line = capture(say_at_every_level, NULL);
        row_equal(r->row, count_lines(line), 4);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_are_quoted_when_needed),
        cmocka_unit_test(a_flood_of_one_message_is_held_back),
    };
    return GS_RUN(tests);
}
