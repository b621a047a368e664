/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <setjmp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Tests as lines of words, read from a text:
 *
 *     # until the end of the line
 *     given node n1 16 · pod old 16 on n1:0
 *
 *     a refused pod is woken when memory comes free
 *       pod p 8 · filter p of n1 = none · tick 1s · expect patches 0
 *       gone <whom> · tick 1s · expect patches <wakes>
 *       | whom  | wakes
 *       | old   | 1
 *       | p     | 0
 *
 * What stands at the left margin is the name of a scenario. Its steps are indented, apart by a
 * line's end or " · "; the steps of the last `given` come first. Where there is a table, whose
 * first line names the columns, it runs once a row, and <column> stands for the row's text. A
 * column called "case" only names the row. A word with blanks stands between double quotes.
 *
 * What the words mean is a layer's matter. A scenario that expects nothing fails, as does a word
 * that nobody takes, a column that nobody uses, and a step that was put off and never came.
 */
struct scenario;

struct scenario_verb {
    const char *word;
    void (*run)(struct scenario *scenario);
};

struct scenario_layer {
    const struct scenario_verb *verbs; /* up to one without a word */
    void (*begin)(struct scenario *scenario);
    void (*end)(void); /* also when it failed */
};

struct scenario {
    const struct scenario_layer *layer;
    const char *file, *name;
    unsigned line;
    char row[32];        /* its line, in words */
    char step[512];      /* as it stands there, columns put in */
    char text[512];      /* its words */
    char *words[64];     /* up to a NULL */
    unsigned at;         /* the next one */
    unsigned checked;    /* expectations that held */
    char off[8][2][256]; /* steps that were put off, and until what; "": none */
    char error[2048];
    jmp_buf out;
};

/* Ends the scenario. */
_Noreturn void scenario_fail(struct scenario *scenario, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* The next word, NULL at the step's end; that is taken where it is wanted. */
const char *scenario_peek(const struct scenario *scenario);
const char *scenario_word(struct scenario *scenario);
/* Takes the next word if it is this one. */
bool scenario_has(struct scenario *scenario, const char *word);
long scenario_number(struct scenario *scenario);
/* "1.5s" */
int64_t scenario_time(struct scenario *scenario);

/* Expectations. A number is the next word: "3", or "1..5". */
void scenario_is(struct scenario *scenario, const char *what, long found);
void scenario_is_text(struct scenario *scenario, const char *what, const char *found,
                      const char *expected);
void scenario_has_text(struct scenario *scenario, const char *found, const char *part);

/* Puts the rest of the step off until something happens, and runs what waits for that. */
void scenario_put_off(struct scenario *scenario, const char *until);
void scenario_now(struct scenario *scenario, const char *until);

/* Runs the scenarios of a text. wrong: words of what is said of the first that is not as it says;
 * NULL: all are. Fails the test where that is not so. */
struct scenario_mistake {
    const char *row, *text, *wrong;
};
void scenario_mistakes_are_seen(const struct scenario_layer *layer,
                                const struct scenario_mistake *rows, size_t count);

/* A main(): the files' scenarios are tests, after those given. */
struct CMUnitTest;
int scenario_main(const struct scenario_layer *layer, const char *const *files,
                  const struct CMUnitTest *tests, size_t count);
