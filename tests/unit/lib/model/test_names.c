/* SPDX-License-Identifier: Apache-2.0 */
#include "rows.h"

#include "gpushare/model/names.h"

static void names_of_the_default_domain_are_the_originals(void **state)
{
    struct gs_names names;
    struct gs_error err = {0};
    assert_int_equal(gs_names_init(&names, "aliyun.com", &err), 0);
    const struct {
        const char *row;
        const char *name;
        const char *expected;
    } rows[] = {
        {"domain", names.domain, "aliyun.com"},
        {"gpu_mem", names.gpu_mem, "aliyun.com/gpu-mem"},
        {"gpu_cores", names.gpu_cores, "aliyun.com/gpu-core.percentage"},
        {"gpu_count", names.gpu_count, "aliyun.com/gpu-count"},
        {"inventory", names.inventory, "aliyun.com/gpu-inventory"},
        {"moved", names.moved, "aliyun.com/gpu-reassigned"},
        {"driver upgrade", names.driver_upgrade, "aliyun.com/gpu-driver-upgrade"},
        {"mps", names.mps, "aliyun.com/gpu-mps"},
        {"cordon", names.cordon, "aliyun.com/gpu-cordon"},
        {"idx", names.idx, "ALIYUN_COM_GPU_MEM_IDX"},
        {"dev", names.dev, "ALIYUN_COM_GPU_MEM_DEV"},
        {"pod", names.pod, "ALIYUN_COM_GPU_MEM_POD"},
        {"container", names.container, "ALIYUN_COM_GPU_MEM_CONTAINER"},
        {"gpus", names.gpus, "ALIYUN_COM_GPU_MEM_GPUS"},
        {"assigned", names.assigned, "ALIYUN_COM_GPU_MEM_ASSIGNED"},
        {"assume_time", names.assume_time, "ALIYUN_COM_GPU_MEM_ASSUME_TIME"},
        {"placement", names.placement, "aliyun.com/gpu-placement"},
        {"enforce", names.enforce, "aliyun.com/gpu-enforce"},
        {"enforced", names.enforced, "aliyun.com/gpu-enforced"},
        {"model", names.model, "aliyun.com/gpu-model"},
        {"model_deny", names.model_deny, "aliyun.com/gpu-model-deny"},
        {"uuid", names.uuid, "aliyun.com/gpu-uuid"},
        {"uuid_deny", names.uuid_deny, "aliyun.com/gpu-uuid-deny"},
        {"offer", names.offer, "aliyun.com/gpu-nominated"},
        {"wake", names.wake, "aliyun.com/gpu-requeue"},
    };
    GS_FOR_EACH_ROW (r, rows) {
        row_text(r->row, r->name, r->expected);
    }
    assert_string_equal(GS_ALLOCATION_KEY, "scheduler.framework.gpushare.allocation");
}

#define TEN "abcdefghij"

static void domains_are_dns_names(void **state)
{
    static const struct {
        const char *row;
        const char *domain;
        bool ok;
        const char *idx;
    } rows[] = {
        {"one label", "local", true, "LOCAL_GPU_MEM_IDX"},
        {"one letter", "x", true, "X_GPU_MEM_IDX"},
        {"dashes and digits", "my-4.corp.io", true, "MY_4_CORP_IO_GPU_MEM_IDX"},
        {"largest", TEN TEN TEN TEN TEN TEN "abc", true, NULL},
        {"one byte more", TEN TEN TEN TEN TEN TEN "abcd", false, NULL},
        {"empty", "", false, NULL},
        {"upper case", "Aliyun.com", false, NULL},
        {"upper case inside", "aliYun.com", false, NULL},
        {"dot first", ".com", false, NULL},
        {"dot last", "com.", false, NULL},
        {"two dots", "a..b", false, NULL},
        {"dash first", "-a.com", false, NULL},
        {"dash last", "a.com-", false, NULL},
        {"label starts with a dash", "a.-b", false, NULL},
        {"label ends with a dash", "a-.b", false, NULL},
        {"slash", "a.com/x", false, NULL},
        {"space", "a com", false, NULL},
        {"underscore", "a_b", false, NULL},
        {"not ASCII", "\xC3\xA4.com", false, NULL},
    };
    GS_FOR_EACH_ROW (r, rows) {
        struct gs_names names, before;
        memset(&names, 'x', sizeof(names));
        before = names;
        struct gs_error err = {0};
        row_equal(r->row, gs_names_init(&names, r->domain, &err), r->ok ? 0 : -1);
        row_equal(r->row, err.code, r->ok ? GS_OK : GS_EINVAL);
        if (r->ok)
            row_true(r->row, names.domain[0] == r->domain[0]);
        else
            row_true(r->row, memcmp(&names, &before, sizeof(names)) == 0);
        if (r->idx)
            row_text(r->row, names.idx, r->idx);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_of_the_default_domain_are_the_originals),
        cmocka_unit_test(domains_are_dns_names),
    };
    return GS_RUN(tests);
}
