/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every folder of cases/ is a run of the program whose output is known:
 *   args       the command line, one word a line
 *   cluster    name of a file of clusters/ (without ending); absent: the real kubeconfig loader
 * runs terminal   optional "WIDTH": standard output is taken for such a terminal
 *   token      optional: the API server wants this one
 *   answers    optional: files of answers/ (without ending), one a line, with answers to what the
 *              cluster in memory does not serve; a later one takes an earlier one's place
 *   stdout, stderr, exit   what must come out; absent: nothing, nothing, 0
 * UPDATE_GOLDEN=1 writes the last three instead of comparing: read the difference before you
 * commit it.
 */
#include "rows.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gpushare/base/cleanup.h"
#include "gpushare/base/num.h"
#include "memory_source.h"

#define CASES    GS_SOURCE_DIR "/tests/unit/inspect/cases"
#define CLUSTERS GS_SOURCE_DIR "/tests/unit/inspect/clusters"
#define ANSWERS  GS_SOURCE_DIR "/tests/unit/inspect/answers"

enum { WORDS_MAX = 32, TEXT_MAX = 1 << 20 };

/* The file's text without a final line end, *caller frees*; NULL when there is none. */
static char *read_text(const char *folder, const char *name)
{
    char path[4096];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    FILE *file = fopen(path, "re");
    if (!file)
        return NULL;
    char *text = calloc(1, TEXT_MAX);
    size_t len = text ? fread(text, 1, TEXT_MAX - 1, file) : 0;
    fclose(file);
    if (len && text[len - 1] == '\n')
        text[len - 1] = 0;
    return text;
}

static json_t *read_answers(const char *folder)
{
    _cleanup_free_ char *text = read_text(folder, "answers");
    json_t *all = text ? json_object() : NULL;
    char *rest = text;
    for (const char *name; (name = strsep(&rest, "\n"));) {
        char path[4096];
        snprintf(path, sizeof(path), ANSWERS "/%s.json", name);
        if (json_object_update_new(all, json_load_file(path, 0, NULL)) < 0)
            _exit(99);
    }
    return all;
}

/* ---- the program, in a process of its own ---- */

static int split(char *text, char **words)
{
    int count = 0;
    words[count++] = (char *)"kubectl-inspect-gpushare";
    for (char *at = text; at && *at && count < WORDS_MAX - 1;) {
        char *end = strchrnul(at, '\n');
        bool last = !*end;
        *end = 0;
        words[count++] = at;
        at = last ? end : end + 1;
    }
    words[count] = NULL;
    return count;
}

static void set_terminal(struct terminal *terminal, const char *text)
{
    if (!text)
        return;
    terminal->screen = true;
    gs_parse_u32(text, strcspn(text, " "), &terminal->width);
}

static void redirect(int fd, const char *path)
{
    int file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_APPEND, 0600);
    if (file < 0 || dup2(file, fd) < 0)
        _exit(99);
    close(file);
}

/* 2026-01-02 03:04:05, for ages. */
static int64_t fixed_ns(void *ctx)
{
    return 1767323045 * GS_NS_PER_S;
}

static const struct gs_clock fixed = {.monotonic_ns = fixed_ns, .wall_ns = fixed_ns};

/* Never returns. */
static void run_child(const char *folder, const char *out, const char *errors)
{
    char cluster_file[4096], *words[WORDS_MAX];
    char *cluster = read_text(folder, "cluster"), *args = read_text(folder, "args");
    char *terminal = read_text(folder, "terminal");
    struct app app = {.connect = cluster ? memory_connect : connect_kube, .clock = &fixed};
    (void)signal(SIGSEGV, SIG_DFL); /* cmocka's handler would go on with the next case */
    redirect(STDOUT_FILENO, out);
    redirect(STDERR_FILENO, errors);
    if (chdir(folder) < 0)
        _exit(99);
    unsetenv("KUBECONFIG");
    unsetenv("KUBERNETES_SERVICE_HOST");
    setenv("HOME", "/nonexistent", 1);
    set_terminal(&app.terminal, terminal);
    snprintf(cluster_file, sizeof(cluster_file), CLUSTERS "/%s.json", cluster ? cluster : "");
    memory_source.cluster_file = cluster_file;
    memory_source.clock = &fixed;
    memory_source.token = read_text(folder, "token");
    memory_source.answers = read_answers(folder);
    int count = split(args, words);
    int code = run_command(&app, count, words);
    fflush(NULL);
    json_decref(memory_source.answers);
    _exit(code);
}

/* ---- comparing ---- */

static void update(const char *folder, const char *name, const char *text)
{
    char path[4096];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    if (!text[0] || (strcmp(name, "exit") == 0 && strcmp(text, "0") == 0)) {
        unlink(path);
        return;
    }
    FILE *file = fopen(path, "we");
    if (!file)
        fail_msg("%s: %s", path, strerror(errno));
    fprintf(file, "%s\n", text);
    fclose(file);
}

static void compare(const char *folder, const char *name, const char *actual, const char *none)
{
    _cleanup_free_ char *expected = read_text(folder, name);
    if (getenv("UPDATE_GOLDEN")) {
        update(folder, name, actual);
        return;
    }
    if (strcmp(actual, expected ? expected : none) != 0)
        fail_msg("%s/%s\n--- expected\n%s\n--- actual\n%s\n---", folder, name,
                 expected ? expected : none, actual);
}

/* libcurl tells how long it tried to connect, which was recorded as 0 ms. */
static void forget_times(char *text)
{
    static const char before[] = " after ", behind[] = " ms: ";
    for (char *at = strstr(text, before); at; at = strstr(at + 1, before)) {
        char *time = at + strlen(before);
        size_t digits = strspn(time, "0123456789");
        if (digits == 0 || strncmp(time + digits, behind, strlen(behind)) != 0)
            continue;
        time[0] = '0';
        memmove(time + 1, time + digits, strlen(time + digits) + 1);
    }
}

static void output_is_as_recorded(void **state)
{
    const char *folder = *state;
    char dir[] = "/tmp/gpushare-golden.XXXXXX", out[64], errors[64], code[16];
    int status = -1;
    assert_non_null(mkdtemp(dir));
    snprintf(out, sizeof(out), "%s/out", dir);
    snprintf(errors, sizeof(errors), "%s/err", dir);
    fflush(NULL);
    pid_t child = fork();
    if (child == 0)
        run_child(folder, out, errors);
    assert_int_equal(waitpid(child, &status, 0), child);
    snprintf(code, sizeof(code), "%d", WIFEXITED(status) ? WEXITSTATUS(status) : -1);
    _cleanup_free_ char *said = read_text(dir, "out"), *complained = read_text(dir, "err");
    unlink(out);
    unlink(errors);
    rmdir(dir);
    forget_times(complained);
    compare(folder, "stderr", complained, "");
    compare(folder, "stdout", said, "");
    compare(folder, "exit", code, "0");
}

/* clusters/secrets.json has the word wherever a secret may stand; what was recorded has it nowhere,
 * whoever recorded it. */
static void no_secret_is_recorded_in_a_snapshot(void **state)
{
    _cleanup_free_ char *text = read_text(CASES "/snapshot", "stdout");
    assert_non_null(text);
    assert_non_null(strstr(text, "aliyun.com/gpu-mem"));
    assert_null(strstr(text, "SECRET"));
}

static int is_case(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

int main(void)
{
    struct dirent **entries;
    int count = scandir(CASES, &entries, is_case, alphasort);
    struct CMUnitTest *tests = calloc((size_t)(count > 0 ? count : 0) + 1, sizeof(*tests));
    if (count < 1 || !tests) {
        fputs("no cases in " CASES "\n", stderr);
        return 1;
    }
    for (int i = 0; i < count; i++) {
        char *folder;
        if (asprintf(&folder, "%s/%s", CASES, entries[i]->d_name) < 0)
            return 1;
        tests[i] = (struct CMUnitTest){.name = entries[i]->d_name,
                                       .test_func = output_is_as_recorded,
                                       .initial_state = folder};
    }
    tests[count] = (struct CMUnitTest)cmocka_unit_test(no_secret_is_recorded_in_a_snapshot);
    int failed = _cmocka_run_group_tests("inspect", tests, (size_t)count + 1, NULL, NULL);
    for (int i = 0; i < count; i++) {
        free(tests[i].initial_state);
        free(entries[i]);
    }
    free(entries);
    free(tests);
    return failed;
}
