/* SPDX-License-Identifier: Apache-2.0 */
#include "scratch.h"

#include <unistd.h>

#include "remove_tree.h"

#include "gpushare/base/cleanup.h"

static char path[32];

static void run(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

static void run(const char *fmt, ...)
{
    _cleanup_free_ char *command = NULL;
    va_list ap;
    va_start(ap, fmt);
    assert_true(vasprintf(&command, fmt, ap) > 0);
    va_end(ap);
    if (system(command) != 0)
        fail_msg("%s", command);
}

/* Old protocols are allowed: it is what is tested that must refuse them. */
void scratch_enter(void)
{
    snprintf(path, sizeof(path), "/tmp/gpushare-test-XXXXXX");
    assert_non_null(mkdtemp(path));
    assert_int_equal(chdir(path), 0);
    scratch_text("openssl.cnf", "openssl_conf = all\n[all]\nssl_conf = ssl\n[ssl]\n"
                                "system_default = old\n[old]\nMinProtocol = TLSv1\n"
                                "CipherString = DEFAULT@SECLEVEL=0\n[req]\n"
                                "distinguished_name = name\n[name]\n");
    assert_int_equal(setenv("OPENSSL_CONF", "openssl.cnf", 1), 0);
}

void scratch_leave(void)
{
    assert_int_equal(chdir("/"), 0);
    remove_tree(path);
}

const char *scratch_path(void)
{
    return path;
}

void scratch_write(const char *name, const void *bytes, size_t len)
{
    FILE *file = fopen("fresh", "we");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, len, file), len);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(rename("fresh", name), 0);
}

void scratch_text(const char *name, const char *text)
{
    scratch_write(name, text, strlen(text));
}

char *scratch_read(const char *name)
{
    char *text = calloc(1, 65536);
    FILE *file = fopen(name, "re");
    assert_true(text && file);
    assert_true(fread(text, 1, 65535, file) < 65535);
    fclose(file);
    return text;
}

void scratch_copy(const char *from, const char *to)
{
    _cleanup_free_ char *text = scratch_read(from);
    scratch_text(to, text);
}

void scratch_certify(const char *name, const char *issuer, const char *subject,
                     const char *extensions, int days)
{
    char signer[128];
    if (issuer)
        snprintf(signer, sizeof(signer), "-CA %s.crt -CAkey %s.key -CAcreateserial", issuer,
                 issuer);
    else
        snprintf(signer, sizeof(signer), "-signkey %s.key", name);
    run("openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout %s.key"
        " -subj %s %s -out csr 2>openssl.log && openssl x509 -req -copy_extensions copyall"
        " -in csr -days %d -out %s.crt %s 2>>openssl.log",
        name, subject, extensions, days, name, signer);
}
