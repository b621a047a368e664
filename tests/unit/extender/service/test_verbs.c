/* SPDX-License-Identifier: Apache-2.0 */
/* What no scenario tells of filter and bind: what is logged, and real time. */
#include "service_rig.h"

#include <time.h>
#include <unistd.h>

#include "rows.h"

static struct rig rig;

static int setup(void **state)
{
    rig_start(&rig);
    rig_lists(&rig);
    rig_node(&rig, "n1", "8,8");
    *state = &rig;
    return 0;
}

static const char *pod(unsigned units)
{
    return rig_json(&rig, (struct rig_pod){.name = "p", .units = units});
}

/* The lines on stderr that hold `words`, while the pod is asked about so often. */
static int lines_of(const char *words, unsigned units, int times)
{
    char line[4096];
    int count = 0, old = dup(STDERR_FILENO);
    FILE *log = tmpfile();
    assert_true(log && old >= 0 && dup2(fileno(log), STDERR_FILENO) >= 0);
    while (times--)
        free(rig_filter(&rig, pod(units), "\"n1\""));
    assert_true(dup2(old, STDERR_FILENO) >= 0);
    close(old);
    rewind(log);
    while (fgets(line, sizeof(line), log))
        count += strstr(line, words) != NULL;
    fclose(log);
    return count;
}

/* kube-scheduler asks again about every waiting pod whenever something changes. */
static void the_same_refusal_is_told_once(void **state)
{
    assert_int_equal(lines_of("no node fits", 17, 5), 1);
    rig_pod(&rig, "q", 4, "n1", "0");
    rig_pod(&rig, "r", 4, "n1", "1");
    assert_int_equal(lines_of("no node fits", 6, 5), 1); /* another reason */
    rig_pod_gone(&rig, "q");
    assert_int_equal(lines_of("no node fits", 6, 1), 0); /* it fits, and is not bound */
}

/* What a process before this one sent may be carried out meanwhile. */
static void the_first_bind_waits_when_it_is_told_to(void **state)
{
    struct timespec before, after;
    rig_stop(&rig);
    rig_start_as(&rig,
                 (struct gs_service_config){.first_bind_ns = 1000000000000 + 50 * GS_NS_PER_MS});
    rig_lists(&rig);
    rig_node(&rig, "n1", "16");
    rig_pod(&rig, "p", 8, NULL, NULL);
    clock_gettime(CLOCK_MONOTONIC, &before);
    rig_expect(rig_try_bind(&rig, "p", "up", "n1"), "{\"Error\":\"\"}");
    clock_gettime(CLOCK_MONOTONIC, &after);
    int64_t took_ns = (after.tv_sec - before.tv_sec) * GS_NS_PER_S + after.tv_nsec - before.tv_nsec;
    assert_true(took_ns >= 50 * GS_NS_PER_MS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(the_same_refusal_is_told_once),
        T(the_first_bind_waits_when_it_is_told_to),
    };
    return GS_RUN(tests);
}
