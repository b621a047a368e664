/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The program itself, against a scripted kubelet (registration, Allocate and
 * PreStartContainer by hand) and the simulator's API server: pods come and go ten thousand times
 * while its pages are read, and the program does not grow; it leaves without losing one, in time
 * when the API server is silent; and it follows the kubelet into another folder.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gpushare/base/buf.h"
#include "gpushare/base/num.h"
#include "gpushare/kube/client.h"
#include "gpushare/kube/kubeconfig.h"
#include "grpc/client.h"
#include "grpc/server.h"
#include "http_probe.h"
#include "rows.h"

#ifdef GS_SANITIZED
enum { ROUNDS = 500, WARM = 100, SAMPLES = 50, UNITS = 4, GROWTH_KIB = 1 << 30 };
#else
enum { ROUNDS = 10000, WARM = 1000, SAMPLES = 50, UNITS = 4, GROWTH_KIB = 256 };
#endif
#define PATIENCE_NS (20 * GS_NS_PER_S)
/* Of the 30 s after which the kubelet kills; one request to a silent API server takes 15. */
#define ENDING_NS (13 * GS_NS_PER_S)

/* The plugin's record of its node. */

/* Field 5 of ContainerAllocateResponse, a CDIDevice whose field 1 is the name (api.proto). */
#define CDI "nvidia.com/gpu=GPU-fake-"

struct rig {
    char dir[64], plugins[96], kubelet[128], kubeconfig[128], plugin[128];
    pid_t sim, program;
    uint16_t port; /* of its pages */
    pthread_t reader;
    atomic_bool stop;
    atomic_int pages;
    struct gs_loop *loop;
    struct gs_grpc_server *registration;
    struct gs_kube_client *client;
    struct gs_grpc_unary *listening; /* to the plugin's list */
    bool registered;
    bool answered;
    enum gs_grpc_status status;
    char reply[2048];
    size_t reply_len;
};

/* ---- protobuf by hand: strings and messages of less than 128 bytes ---- */

static void put_field(struct gs_buf *buf, const void *bytes, size_t len)
{
    assert_true(len < 128);
    gs_buf_putc(buf, 1 << 3 | 2);
    gs_buf_putc(buf, (char)len);
    gs_buf_append(buf, bytes, len);
}

static void put_ids(struct gs_buf *buf, int round)
{
    for (int i = 0; i < UNITS; i++) {
        char id[32];
        snprintf(id, sizeof(id), "g-%d", (round * 7 + i) % 32);
        put_field(buf, id, strlen(id));
    }
}

/* ---- the kubelet ---- */

static void on_register(struct gs_grpc_call *call, const void *message, size_t len, void *ctx)
{
    ((struct rig *)ctx)->registered = true;
    uint8_t *body;
    gs_grpc_call_reply(call, gs_grpc_message_new(0, &body));
}

static const struct gs_grpc_method registration[] = {
    {"/v1beta1.Registration/Register", on_register, NULL}};

static void on_reply(void *ctx, const struct gs_grpc_reply *reply)
{
    struct rig *rig = ctx;
    rig->answered = true;
    rig->status = reply->status;
    rig->reply_len = reply->len < sizeof(rig->reply) ? reply->len : 0;
    if (rig->reply_len)
        memcpy(rig->reply, reply->message, rig->reply_len);
}

static bool says(const struct rig *rig, const char *text)
{
    return memmem(rig->reply, rig->reply_len, text, strlen(text)) != NULL;
}

static void step_until(struct rig *rig, const bool *done, const char *what)
{
    int64_t until_ns = gs_loop_now_ns(rig->loop) + PATIENCE_NS;
    while (!*done) {
        struct gs_error err = {0};
        if (gs_loop_step(rig->loop, 100 * GS_NS_PER_MS, &err) < 0)
            fail_msg("loop: %s", err.msg);
        if (gs_loop_now_ns(rig->loop) > until_ns)
            fail_msg("%s: not in time", what);
    }
}

static void call_plugin(struct rig *rig, const char *method, const struct gs_buf *message)
{
    const struct gs_grpc_unary_options options = {.socket_path = rig->plugin,
                                                  .method_path = method,
                                                  .timeout_ns = PATIENCE_NS,
                                                  .max_reply_bytes = 65536,
                                                  .done = on_reply,
                                                  .ctx = rig};
    struct gs_error err = {0};
    struct gs_grpc_unary *call;
    uint8_t *body;
    struct gs_grpc_message *request = gs_grpc_message_new(message->len, &body);
    if (message->len > 0)
        memcpy(body, message->data, message->len);
    rig->answered = false;
    if (gs_grpc_unary_start(rig->loop, &options, request, &call, &err) < 0)
        fail_msg("%s: %s", method, err.msg);
    step_until(rig, &rig->answered, method);
    if (rig->status != GS_GRPC_OK)
        fail_msg("%s: status %d", method, rig->status);
}

/* ---- the API ---- */

static void ask_api(struct rig *rig, const char *method, const char *path, const char *body)
{
    const struct gs_kube_request request = {
        .method = method, .path = path, .body = body, .body_len = body ? strlen(body) : 0};
    struct gs_buf answer = GS_BUF(1 << 20);
    struct gs_error err = {0};
    int status = 0;
    if (gs_kube_request(rig->client, &request, &status, &answer, &err) < 0)
        fail_msg("%s %s: %s", method, path, err.msg);
    if (status >= 300)
        fail_msg("%s %s: %d %s", method, path, status, answer.data);
    gs_buf_release(&answer);
}

static bool node_says(struct rig *rig, const char *words)
{
    const struct gs_kube_request request = {.method = "GET", .path = "/api/v1/nodes/n1"};
    struct gs_buf answer = GS_BUF(1 << 20);
    struct gs_error err = {0};
    int status = 0;
    if (gs_kube_request(rig->client, &request, &status, &answer, &err) < 0)
        fail_msg("GET node: %s", err.msg);
    bool says = strstr(answer.data, words) != NULL;
    gs_buf_release(&answer);
    return says;
}

static void step_for(struct rig *rig, int64_t ns)
{
    struct gs_error err = {0};
    for (int64_t until_ns = gs_loop_now_ns(rig->loop) + ns; gs_loop_now_ns(rig->loop) < until_ns;)
        gs_loop_step(rig->loop, 10 * GS_NS_PER_MS, &err);
}

static void wait_until_node_says(struct rig *rig, const char *words)
{
    int64_t until_ns = gs_loop_now_ns(rig->loop) + PATIENCE_NS;
    while (!node_says(rig, words)) {
        step_for(rig, 50 * GS_NS_PER_MS);
        if (gs_loop_now_ns(rig->loop) > until_ns)
            fail_msg("the node never says %s", words);
    }
}

static void on_list_ended(void *ctx, const struct gs_grpc_reply *reply)
{
    ((struct rig *)ctx)->listening = NULL;
}

/* ListAndWatch, as long as the test lasts. */
static void listen_to_plugin(struct rig *rig)
{
    const struct gs_grpc_unary_options options = {.socket_path = rig->plugin,
                                                  .method_path =
                                                      "/v1beta1.DevicePlugin/ListAndWatch",
                                                  .timeout_ns = 3 * PATIENCE_NS,
                                                  .max_reply_bytes = 1 << 20,
                                                  .done = on_list_ended,
                                                  .ctx = rig};
    struct gs_error err = {0};
    uint8_t *body;
    if (gs_grpc_unary_start(rig->loop, &options, gs_grpc_message_new(0, &body), &rig->listening,
                            &err) < 0)
        fail_msg("ListAndWatch: %s", err.msg);
}

static void make_pod(struct rig *rig, int round)
{
    char body[1024];
    snprintf(body, sizeof(body),
             "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"p%d\",\"namespace\":"
             "\"default\",\"annotations\":{\"ALIYUN_COM_GPU_MEM_IDX\":\"%d\","
             "\"ALIYUN_COM_GPU_MEM_ASSIGNED\":\"false\"}},\"spec\":{\"nodeName\":\"n1\","
             "\"containers\":[{\"name\":\"c\",\"image\":\"i\",\"resources\":{\"limits\":"
             "{\"aliyun.com/gpu-mem\":\"%d\"}}}]}}",
             round, round % 2, UNITS);
    ask_api(rig, "POST", "/api/v1/namespaces/default/pods", body);
}

static void allocate(struct rig *rig, int round, const char *name)
{
    struct gs_buf ids = GS_BUF(256), request = GS_BUF(256);
    put_ids(&ids, round);
    put_field(&request, ids.data, ids.len);
    call_plugin(rig, "/v1beta1.DevicePlugin/Allocate", &request);
    assert_true(says(rig, name));
    gs_buf_release(&ids);
    gs_buf_release(&request);
}

static void one_round(struct rig *rig, int round)
{
    struct gs_buf ids = GS_BUF(256);
    char path[128];
    make_pod(rig, round);
    allocate(rig, round, CDI);
    put_ids(&ids, round);
    call_plugin(rig, "/v1beta1.DevicePlugin/PreStartContainer", &ids);
    snprintf(path, sizeof(path), "/api/v1/namespaces/default/pods/p%d", round);
    ask_api(rig, "DELETE", path, "{\"gracePeriodSeconds\":0}");
    gs_buf_release(&ids);
}

/* ---- its pages ---- */

static uint16_t free_port(void)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(at);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&at, len), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &len), 0);
    close(fd);
    return ntohs(at.sin_port);
}

/* What every page must say; another thread than the one that answers the kubelet writes them. */
static void *read_pages(void *arg)
{
    static const struct {
        const char *path, *words;
    } pages[] = {{"/metrics", "\ngpushare_"}, {"/healthz", "ok"}};
    struct rig *rig = arg;
    while (!atomic_load(&rig->stop)) {
        for (size_t i = 0; i < GS_COUNT_OF(pages); i++) {
            struct http_probe probe;
            struct http_answer answer;
            if (http_probe_open(&probe, rig->port) &&
                http_probe_text(&probe, "GET %s HTTP/1.1\r\nHost: x\r\n\r\n", pages[i].path) &&
                http_probe_answer(&probe, &answer) && answer.status == 200 &&
                strstr(answer.body, pages[i].words))
                atomic_fetch_add(&rig->pages, 1);
            http_probe_close(&probe);
        }
        usleep(5000);
    }
    return NULL;
}

/* ---- processes ---- */

static pid_t start(const char *log, const char *const argv[])
{
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        int fd = open(log, O_WRONLY | O_CREAT | O_APPEND, 0600);
        dup2(fd, 1);
        dup2(fd, 2);
        execv(argv[0], (char *const *)argv);
        _exit(127);
    }
    return pid;
}

static int stop(pid_t pid)
{
    int status = 0;
    kill(pid, SIGTERM);
    waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* By itself; the kubelet goes on meanwhile. */
static int wait_for_end(struct rig *rig)
{
    int status = 0;
    int64_t until_ns = gs_loop_now_ns(rig->loop) + PATIENCE_NS;
    while (waitpid(rig->program, &status, WNOHANG) == 0) {
        step_for(rig, 50 * GS_NS_PER_MS);
        if (gs_loop_now_ns(rig->loop) > until_ns)
            fail_msg("the program does not end");
    }
    rig->program = 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* Private_Dirty and friends of the whole process, in KiB. */
/* What a process has written itself: pages of its files are its own or shared as other processes
 * come and go. */
static uint64_t written_kib(pid_t pid)
{
    char path[64], line[256];
    uint64_t sum = 0, value;
    snprintf(path, sizeof(path), "/proc/%d/smaps_rollup", (int)pid);
    FILE *file = fopen(path, "re");
    assert_non_null(file);
    while (fgets(line, sizeof(line), file)) {
        const char *at = strpbrk(line, "0123456789");
        if (strncmp(line, "Private_Dirty:", 14) == 0 && at &&
            gs_parse_u64(at, strspn(at, "0123456789"), &value))
            sum += value;
    }
    fclose(file);
    return sum;
}

static void api_connect(struct rig *rig)
{
    static struct gs_names names;
    struct gs_kube_config config = {0};
    struct gs_error err = {0};
    assert_int_equal(gs_names_init(&names, "aliyun.com", &err), 0);
    const struct gs_kube_options options = {.program = "test", .names = &names};
    for (int i = 0; i < 100 && access(rig->kubeconfig, R_OK) < 0; i++)
        usleep(50000);
    if (gs_kube_config_load(rig->kubeconfig, &config, &err) < 0 ||
        gs_kube_client_new(&config, &options, &rig->client, &err) < 0)
        fail_msg("API: %s", err.msg);
    ask_api(rig, "POST", "/api/v1/nodes",
            "{\"apiVersion\":\"v1\",\"kind\":\"Node\",\"metadata\":{\"name\":\"n1\"}}");
}

static void serve_kubelet(struct rig *rig)
{
    struct gs_error err = {0};
    if (gs_grpc_server_new(rig->loop, registration, 1, rig, &rig->registration, &err) < 0 ||
        gs_grpc_server_listen(rig->registration, rig->kubelet, &err) < 0)
        fail_msg("kubelet: %s", err.msg);
}

static void write_file(const struct rig *rig, const char *name, const char *text)
{
    char path[128];
    snprintf(path, sizeof(path), "%s/%s", rig->dir, name);
    FILE *file = fopen(path, "we");
    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
}

/* gpus: the text of --gpu-file; NULL: two simulated ones. */
static void rig_up_with(struct rig *rig, const char *gpus)
{
    char sim_log[128], program_log[128], listen[32], file[96];
    *rig = (struct rig){.dir = "/tmp/gpushare-dp.XXXXXX"};
    assert_non_null(mkdtemp(rig->dir));
    snprintf(file, sizeof(file), "%s/gpus.json", rig->dir);
    write_file(rig, "gpus.json", gpus ? gpus : "");
    snprintf(rig->plugins, sizeof(rig->plugins), "%s/device-plugins", rig->dir);
    assert_int_equal(mkdir(rig->plugins, 0700), 0);
    snprintf(rig->kubelet, sizeof(rig->kubelet), "%s/kubelet.sock", rig->plugins);
    snprintf(rig->kubeconfig, sizeof(rig->kubeconfig), "%s/kubeconfig", rig->dir);
    snprintf(rig->plugin, sizeof(rig->plugin), "%s/aliyungpushare.sock", rig->plugins);
    snprintf(sim_log, sizeof(sim_log), "%s/sim.log", rig->dir);
    snprintf(program_log, sizeof(program_log), "%s/program.log", rig->dir);
    rig->sim =
        start(sim_log, (const char *const[]){GS_BINARY_DIR "/gpushare-sim", "serve", "--listen",
                                             "127.0.0.1:0", "--kubeconfig-out", rig->kubeconfig,
                                             "--history", "64", "--log-level", "error", NULL});
    api_connect(rig);
    assert_int_equal(gs_loop_new(gs_clock_system(), &rig->loop, NULL), 0);
    serve_kubelet(rig);
    rig->port = free_port();
    snprintf(listen, sizeof(listen), "127.0.0.1:%u", rig->port);
    rig->program =
        start(program_log,
              (const char *const[]){
                  GS_BINARY_DIR "/gpushare-device-plugin", "--kubeconfig", rig->kubeconfig,
                  "--node-name", "n1", gpus ? "--gpu-file" : "--fake-gpus", gpus ? file : "2x16GiB",
                  "--device-plugin-dir", rig->plugins, "--pass-device-specs", "--nvidia-dev-root",
                  rig->dir, "--health-listen", listen, "--device-list-strategy", "envvar,cdi-cri",
                  "--log-level", "warn", NULL});
    step_until(rig, &rig->registered, "registration");
}

static void rig_up(struct rig *rig)
{
    rig_up_with(rig, NULL);
}

static void print_file(const char *dir, const char *name)
{
    char path[128], line[1024];
    snprintf(path, sizeof(path), "%s/%s", dir, name);
    FILE *file = fopen(path, "re");
    while (file && fgets(line, sizeof(line), file))
        print_message("%s", line);
    if (file)
        fclose(file);
}

static int remove_entry(const char *path, const struct stat *st, int kind, struct FTW *where)
{
    return remove(path);
}

static void remove_folder(const char *dir)
{
    assert_int_equal(nftw(dir, remove_entry, 8, FTW_DEPTH | FTW_PHYS), 0);
}

static void rig_down(struct rig *rig)
{
    int status = rig->program ? stop(rig->program) : 0;
    if (status)
        print_file(rig->dir, "program.log");
    assert_int_equal(status, 0);
    stop(rig->sim);
    if (rig->listening)
        gs_grpc_unary_cancel(rig->listening);
    gs_grpc_server_free(rig->registration);
    gs_loop_free(rig->loop);
    gs_kube_client_free(rig->client);
    remove_folder(rig->dir);
}

static void lower_to(uint64_t *least, uint64_t value)
{
    if (value < *least)
        *least = value;
}

static void ten_thousand_pods_leave_nothing_behind(void **state)
{
    struct rig rig;
    uint64_t warm_kib = UINT64_MAX, end_kib = UINT64_MAX;
    rig_up(&rig);
    assert_int_equal(pthread_create(&rig.reader, NULL, read_pages, &rig), 0);
    for (int round = 0; round < ROUNDS; round++) {
        one_round(&rig, round);
        /* The least of some rounds: a page is being written in some of them. */
        if (round >= WARM - SAMPLES && round < WARM)
            lower_to(&warm_kib, written_kib(rig.program));
        if (round >= ROUNDS - SAMPLES)
            lower_to(&end_kib, written_kib(rig.program));
    }
    atomic_store(&rig.stop, true);
    pthread_join(rig.reader, NULL);
    assert_in_range(atomic_load(&rig.pages), 20, INT_MAX);
    print_message("memory written: %llu KiB after %d rounds, %llu KiB after %d\n",
                  (unsigned long long)warm_kib, WARM, (unsigned long long)end_kib, ROUNDS);
    assert_true(end_kib <= warm_kib + GROWTH_KIB);
    rig_down(&rig);
}

#define OPEN   "\\\"schedulable\\\":true"
#define CLOSED "\\\"schedulable\\\":false"

/* An upgrade: the kubelet has the next plugin's list before pods may come; on SIGTERM nothing new
 * comes to the node, and what was bound just before is still served. */
static void leaves_without_losing_a_pod(void **state)
{
    struct rig rig;
    rig_up(&rig);
    step_for(&rig, 1 * GS_NS_PER_S);
    assert_false(node_says(&rig, OPEN));
    listen_to_plugin(&rig);
    wait_until_node_says(&rig, OPEN);
    kill(rig.program, SIGTERM);
    wait_until_node_says(&rig, CLOSED);
    one_round(&rig, 1);
    assert_false(node_says(&rig, OPEN));
    assert_int_equal(wait_for_end(&rig), 0);
    rig_down(&rig);
}

/* SIGTERM, with nothing under way, and with a pod's record on its way. */
static void ends_in_time_while_the_api_is_silent(void **state)
{
    static const struct {
        const char *row;
        bool record;
    } rows[] = {{"nothing under way", false}, {"a record on its way", true}};
    GS_FOR_EACH_ROW (r, rows) {
        struct rig rig;
        rig_up(&rig);
        listen_to_plugin(&rig);
        wait_until_node_says(&rig, OPEN);
        if (r->record)
            make_pod(&rig, 1);
        step_for(&rig, 200 * GS_NS_PER_MS); /* the watch brings it */
        kill(rig.sim, SIGSTOP);
        if (r->record)
            allocate(&rig, 1, CDI);
        int64_t begun_ns = gs_loop_now_ns(rig.loop);
        kill(rig.program, SIGTERM);
        row_equal(r->row, wait_for_end(&rig), 0);
        row_true(r->row, gs_loop_now_ns(rig.loop) - begun_ns < ENDING_NS);
        kill(rig.sim, SIGCONT);
        rig_down(&rig);
    }
}

static void stop_kubelet(struct rig *rig)
{
    gs_grpc_server_free(rig->registration);
    rig->registration = NULL;
}

/* Somebody moves the kubelet's plugin folder away, or removes it with all that is in it, and makes
 * another, in which a kubelet listens. */
static void follows_the_kubelet_into_another_folder(void **state)
{
    static const char *const rows[] = {"moved away", "removed"};
    GS_FOR_EACH_ROW (row, rows) {
        struct rig rig;
        char away[128];
        rig_up(&rig);
        listen_to_plugin(&rig);
        wait_until_node_says(&rig, OPEN);
        snprintf(away, sizeof(away), "%s.away", rig.plugins);
        stop_kubelet(&rig);
        rename(rig.plugins, away);
        if (row == &rows[1])
            remove_folder(away);
        assert_int_equal(mkdir(rig.plugins, 0700), 0);
        rig.registered = false;
        serve_kubelet(&rig);
        step_until(&rig, &rig.registered, *row);
        make_pod(&rig, 1);
        allocate(&rig, 1, CDI);
        if (row == &rows[0])
            remove_folder(away);
        rig_down(&rig);
    }
}

/* A second vendor is a row: its containers get its variable, CDI devices and device nodes. */
static void another_vendors_gpus_are_given_as_it_wants(void **state)
{
    static const char gpus[] = "{\"v\":1,\"unit\":\"GiB\",\"vendor\":\"simulated\",\"gpus\":["
                               "{\"idx\":0,\"uuid\":\"SIM-a\",\"mem\":16,\"minor\":77}]}";
    static const char *const said[] = {"SIMULATED_VISIBLE_DEVICES", "SIM-a", "/dev/simgpu77",
                                       "/dev/simgpuctl"};
    struct rig rig;
    char dev[96];
    rig_up_with(&rig, gpus);
    snprintf(dev, sizeof(dev), "%s/dev", rig.dir);
    assert_int_equal(mkdir(dev, 0700), 0);
    write_file(&rig, "dev/simgpu77", "");
    write_file(&rig, "dev/simgpuctl", "");
    make_pod(&rig, 0);
    allocate(&rig, 0, "simulated.gpushare/gpu=SIM-a");
    GS_FOR_EACH_ROW (text, said)
        row_true(*text, says(&rig, *text));
    assert_false(says(&rig, "NVIDIA") || says(&rig, "nvidia"));
    rig_down(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(leaves_without_losing_a_pod),
        cmocka_unit_test(ends_in_time_while_the_api_is_silent),
        cmocka_unit_test(follows_the_kubelet_into_another_folder),
        cmocka_unit_test(another_vendors_gpus_are_given_as_it_wants),
        cmocka_unit_test(ten_thousand_pods_leave_nothing_behind),
    };
    return GS_RUN(tests);
}
