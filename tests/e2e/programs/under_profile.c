/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a program under a seccomp profile in the form that container runtimes read, without a
 * container runtime:
 *
 *   under_profile [--kill] [--without NAME]... PROFILE.json PROGRAM [ARGUMENT]...
 *
 * --kill: what the profile refuses ends the program instead (SIGSYS), so that nothing goes by
 * unseen. --without: as if the profile did not name this call.
 *
 * Knows of the form what our profile uses: names and actions without conditions on arguments; what
 * else it says is an error. Names that this libseccomp does not know are passed over, as runc does.
 */
#include <err.h>
#include <errno.h>
#include <jansson.h>
#include <seccomp.h>
#include <stdbool.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

enum { WITHOUT_MAX = 16 };

struct request {
    bool kill;
    const char *without[WITHOUT_MAX];
    int without_count;
    const char *profile;
    char **program;
};

static void read_request(struct request *request, char **argv)
{
    char **at = argv + 1;
    for (; *at && strncmp(*at, "--", 2) == 0; at++) {
        if (strcmp(*at, "--kill") == 0)
            request->kill = true;
        else if (strcmp(*at, "--without") == 0 && at[1] && request->without_count < WITHOUT_MAX)
            request->without[request->without_count++] = *++at;
        else
            errx(2, "unknown option %s", *at);
    }
    if (!at[0] || !at[1])
        errx(2, "usage: under_profile [--kill] [--without NAME]... PROFILE.json PROGRAM ...");
    request->profile = at[0];
    request->program = at + 1;
}

static const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

static bool is_left_out(const struct request *request, const char *name)
{
    for (int i = 0; i < request->without_count; i++) {
        if (strcmp(request->without[i], name) == 0)
            return true;
    }
    return false;
}

static void allow(scmp_filter_ctx filter, const struct request *request, const json_t *rule)
{
    const json_t *names = json_object_get(rule, "names"), *name;
    size_t index;
    if (strcmp(text_of(rule, "action"), "SCMP_ACT_ALLOW") != 0 || json_object_get(rule, "args"))
        errx(2, "a rule that is no plain SCMP_ACT_ALLOW");
    json_array_foreach(names, index, name)
    {
        const char *text = json_string_value(name);
        int number = seccomp_syscall_resolve_name(text);
        if (number == __NR_SCMP_ERROR || is_left_out(request, text))
            continue;
        int error = seccomp_rule_add(filter, SCMP_ACT_ALLOW, number, 0);
        if (error)
            errx(1, "%s: %s", text, strerror(-error));
    }
}

static scmp_filter_ctx build(const struct request *request)
{
    json_error_t why;
    json_t *profile = json_load_file(request->profile, 0, &why), *rule;
    size_t index;
    if (!profile)
        errx(2, "%s: %s", request->profile, why.text);
    if (strcmp(text_of(profile, "defaultAction"), "SCMP_ACT_ERRNO") != 0)
        errx(2, "the profile's defaultAction is not SCMP_ACT_ERRNO");
    json_int_t number = json_integer_value(json_object_get(profile, "defaultErrnoRet"));
    uint32_t refuse = SCMP_ACT_ERRNO((uint32_t)(number ? number : EPERM));
    scmp_filter_ctx filter = seccomp_init(request->kill ? SCMP_ACT_KILL_PROCESS : refuse);
    if (!filter)
        errx(1, "out of memory");
    json_array_foreach(json_object_get(profile, "syscalls"), index, rule)
    {
        allow(filter, request, rule);
    }
    json_decref(profile);
    return filter;
}

int main(int argc, char **argv)
{
    struct request request = {0};
    read_request(&request, argv);
    scmp_filter_ctx filter = build(&request);
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
        err(1, "no new privileges");
    int error = seccomp_load(filter);
    if (error)
        errx(1, "the filter is not loaded: %s", strerror(-error));
    execvp(request.program[0], request.program);
    err(127, "%s", request.program[0]);
}
