/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "gpushare/model/node.h"
#include "gpushare/model/pod.h"

/*
 * What an API server says ends on a terminal, on a page, and in commands that are pasted. So it is
 * made fit for that where it comes in, once, and not wherever it is printed: a name keeps what
 * names of Kubernetes have, letters, digits and "-._:", and '?' in place of every other byte; other
 * texts are calmed (base/utf8.h). An API server that keeps to its own rules lets through no name
 * that this changes.
 *
 * Texts that change are copied into the arena, which has to outlive the object: its own will do.
 */
void calm_pod(struct gs_arena *arena, struct gs_pod *pod);
void calm_node(struct gs_arena *arena, struct gs_node *node);
