/* SPDX-License-Identifier: Apache-2.0 */
#include "rows.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>

#include "gpushare/base/clock.h"
#include "mps/pipes.h"
#include "mps/supervise.h"

/*
 * Each look is made by the wait for the next one, which goes on with the script and its time:
 * "10a 3s" is ten seconds in which the daemon answers, and three in which it is silent.
 *   a answers   c with clients   f with a fault   F with a fault and clients
 *   s says nothing   S says nothing, and has a server
 *   d has died   n is not started
 */
static int64_t time_ns;
static const char *script;
static char daemon_does, trace[2048];
static struct mps_state said;
static struct supervisor *supervisor;
static sem_t started; /* the pointer is set */

static int64_t now_ns(void *ctx)
{
    return time_ns;
}

const struct gs_clock *__wrap_gs_clock_system(void);

const struct gs_clock *__wrap_gs_clock_system(void)
{
    static const struct gs_clock clock = {.monotonic_ns = now_ns, .wall_ns = now_ns};
    return &clock;
}

static void note(const char *what)
{
    size_t len = strlen(trace);
    snprintf(trace + len, sizeof(trace) - len, "%.1f %s; ", (double)time_ns / 1e9 - 1000, what);
}

/* The next part of the script: how long, and what the daemon does. */
static bool goes_on(void)
{
    static int halves;
    if (halves == 0 && *script) {
        halves = 2 * (int)strtol(script, (char **)&script, 10);
        daemon_does = *script++;
        script += *script == ' ';
    }
    time_ns += GS_NS_PER_S / 2;
    return halves-- > 0 || (halves = 0);
}

int __wrap_pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *lock,
                                  const struct timespec *until);

int __wrap_pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *lock,
                                  const struct timespec *until)
{
    if (goes_on())
        return ETIMEDOUT;
    pthread_mutex_unlock(lock);
    sem_wait(&started);
    supervisor_ask_to_stop(supervisor);
    pthread_mutex_lock(lock);
    return 0;
}

bool mps_path(const char *root, const char *uuid, const char *leaf, char ret[MPS_PATH_BYTES])
{
    return snprintf(ret, MPS_PATH_BYTES, "%s/%s/%s", root, uuid, leaf) > 0;
}

bool mps_state_write(const char *root, const char *uuid, const struct mps_state *state, int64_t now)
{
    if (state->ready != said.ready || strcmp(state->why, said.why) != 0)
        note(state->ready ? "ready" : state->why);
    said = *state;
    return true;
}

int control_start(const struct control_daemon *daemon, pid_t *ret, struct gs_error *err)
{
    note("START");
    *ret = 77;
    return daemon_does == 'n' ? gs_fail(err, GS_EIO, "no process") : 0;
}

int control_ask(const struct control_daemon *daemon, struct control_answer *ret,
                struct gs_error *err)
{
    if (daemon_does == 's' || daemon_does == 'S')
        return gs_fail(err, GS_ETIMEOUT, "silent");
    *ret = (struct control_answer){.clients = daemon_does == 'c' || daemon_does == 'F',
                                   .fault = daemon_does == 'f' || daemon_does == 'F'};
    return 0;
}

bool control_serves(pid_t daemon)
{
    return daemon_does == 'S';
}

bool control_ended(pid_t pid)
{
    return daemon_does == 'd';
}

void control_bound_logs(const struct control_daemon *daemon)
{
}

void control_quit(const struct control_daemon *daemon)
{
    note("QUIT");
}

void control_stop(pid_t pid)
{
    note("STOP");
}

int pipes_make(struct pipes *pipes, const char *root, const char *uuid, struct gs_error *err)
{
    return 0;
}

void pipes_clear(struct pipes *pipes)
{
}

int pipes_find(struct pipes *pipes, pid_t daemon, struct gs_error *err)
{
    return 0;
}

#define START(at)  at " START; " at " the MPS daemon is starting; "
#define DIED(at)   at " STOP; " at " the MPS daemon has exited and restarts; "
#define FAILED(at) at " QUIT; " at " the MPS server has failed and restarts; " at " STOP; "
#define LEFT(at)                                                                                   \
    at " the MPS daemon does not respond; it is not restarted, as its server may have clients; "
#define END(at) at " gpushare-mps has stopped; " at " STOP; "

static void a_daemon_is_told_stopped_and_started_by_what_it_does(void **state)
{
    static const struct {
        const char *row, *script, *trace;
    } rows[] = {
        {"it answers after a while", "2s 2a", START("0.0") "2.5 ready; " END("4.5")},
        {"it never answers", "20s",
         START("0.0") "15.0 silent; 15.0 STOP; " START("16.0") END("20.5")},
        {"it is not started", "2n 4a",
         "0.0 START; 0.0 no process; 1.0 START; " START("3.0") "3.5 ready; " END("6.5")},
        {"each pause is twice the last", "1a 9d 1a",
         START("0.0") "0.5 ready; " DIED("1.5") START("2.5") DIED("3.0") START("5.0") DIED("5.5")
             START("9.5") DIED("10.0") "11.5 gpushare-mps has stopped; "},
        {"but for one that ran for less than a minute", "1d 50a 3d 3a",
         START("0.0") DIED("0.5") START("1.5") "2.0 ready; " DIED("51.5") START("53.5")
             DIED("54.0") "57.5 gpushare-mps has stopped; "},
        {"as for one that ran for longer", "1d 70a 3d 4a",
         START("0.0") DIED("0.5") START("1.5") "2.0 ready; " DIED("71.5") START("72.5") DIED("73.0")
             START("75.0") "75.5 ready; " END("78.5")},
        {"silent, without a server", "4c 20s",
         START("0.0") "0.5 ready; 6.5 silent; 15.5 STOP; " START("16.5") END("24.5")},
        {"silent, with a server", "4c 3600S 4a",
         START("0.0") "0.5 ready; 6.5 silent; " LEFT("15.5") "3606.5 ready; " END("3608.5")},
        {"until it has none", "4c 30S 4s",
         START("0.0") "0.5 ready; 6.5 silent; " LEFT("15.5") "36.5 silent; 36.5 STOP; " START(
             "37.5") END("38.5")},
        {"silent from its start, with a server", "1S 60S 4a",
         START("0.0") LEFT("15.0") "61.5 ready; " END("65.5")},
        {"a fault after silence", "4c 20S 1f 4a",
         START("0.0") "0.5 ready; 6.5 silent; " LEFT("15.5") FAILED("24.5")
             START("25.5") "26.0 ready; " END("29.5")},
        {"a fault", "4a 4F 4f 4a",
         START("0.0") "0.5 ready; 6.5 the MPS server has failed: its clients have to end before it "
                      "restarts; " FAILED("9.5") START("10.5") FAILED("11.0")
                          START("13.0") "13.5 ready; " END("16.5")},
    };
    static const struct control control;
    static const struct gs_gpu gpu = {.uuid = "GPU-1"};
    assert_int_equal(sem_init(&started, 0, 0), 0);
    GS_FOR_EACH_ROW (r, rows) {
        struct gs_error err = {0};
        time_ns = 1000 * GS_NS_PER_S;
        script = r->script;
        daemon_does = r->script[strspn(r->script, "0123456789")];
        trace[0] = '\0';
        said = (struct mps_state){0};
        row_equal(r->row, supervisor_start(&control, "/r", &gpu, &supervisor, &err), 0);
        sem_post(&started);
        supervisor_free(supervisor);
        row_text(r->row, trace, r->trace);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_daemon_is_told_stopped_and_started_by_what_it_does),
    };
    return GS_RUN(tests);
}
