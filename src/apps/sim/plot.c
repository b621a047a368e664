/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/plot.h"

#include <errno.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static bool ends_with(const char *text, const char *end)
{
    size_t len = strlen(text), tail = strlen(end);
    return len >= tail && strcmp(text + len - tail, end) == 0;
}

/* gnuplot's single quotes: nothing is special but the quote itself, which is doubled. */
static void put_quoted(FILE *script, const char *text)
{
    fputc('\'', script);
    for (; *text; text++) {
        if (*text == '\'')
            fputc('\'', script);
        fputc(*text, script);
    }
    fputc('\'', script);
}

static void put_points(FILE *script, uint32_t number, const struct plot_line *line)
{
    fprintf(script, "$line%u << EOD\n", number);
    for (uint32_t i = 0; i < line->count; i++)
        fprintf(script, "%g %.2f\n", line->x[i], line->y[i]);
    fputs("EOD\n", script);
}

static void put_script(FILE *script, const char *path, const char *terminal,
                       const struct plot_chart *chart, const struct plot_line *lines,
                       uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        put_points(script, i, &lines[i]);
    fprintf(script, "set terminal %s size 900,560\nset output ", terminal);
    put_quoted(script, path);
    fputs("\nset xlabel ", script);
    put_quoted(script, chart->x);
    fputs("\nset ylabel ", script);
    put_quoted(script, chart->y);
    fprintf(script, "\n%sset grid\nplot ", chart->ranges);
    for (uint32_t i = 0; i < count; i++) {
        fprintf(script, "%s$line%u using 1:2 with lines linewidth 2 title ", i ? ", " : "", i);
        put_quoted(script, lines[i].name);
    }
    fputc('\n', script);
}

static int run_gnuplot(int script_fd, struct gs_error *err)
{
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, script_fd, STDIN_FILENO);
    char name[] = "gnuplot";
    char *argv[] = {name, NULL};
    pid_t pid;
    int failed = posix_spawnp(&pid, name, &actions, NULL, argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    if (failed == ENOENT)
        return gs_fail(err, GS_ENOENT,
                       "gnuplot is not installed (Debian: apt install gnuplot-nox)");
    if (failed)
        return gs_fail_errno(err, GS_EIO, failed, "gnuplot");
    int status = -1;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    if (!WIFEXITED(status) || WEXITSTATUS(status))
        return gs_fail(err, GS_EIO, "gnuplot failed");
    return 0;
}

static const char *terminal_for(const char *path)
{
    if (ends_with(path, ".svg"))
        return "svg background rgb 'white'";
    return ends_with(path, ".png") ? "png" : NULL;
}

int plot_check(const char *path, struct gs_error *err)
{
    if (terminal_for(path))
        return 0;
    return gs_fail(err, GS_EINVAL, "%.160s ends neither in .svg nor in .png", path);
}

int plot_draw(const char *path, const struct plot_chart *chart, const struct plot_line *lines,
              uint32_t count, struct gs_error *err)
{
    const char *terminal = terminal_for(path);
    if (!terminal)
        return plot_check(path, err);
    FILE *script = tmpfile();
    if (!script)
        return gs_fail_errno(err, GS_EIO, errno, "temporary file");
    put_script(script, path, terminal, chart, lines, count);
    int result = -1;
    if (fflush(script) != 0 || lseek(fileno(script), 0, SEEK_SET) < 0)
        gs_fail_errno(err, GS_EIO, errno, "temporary file");
    else
        result = run_gnuplot(fileno(script), err);
    fclose(script);
    return result;
}
