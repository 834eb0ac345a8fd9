/*
 * bugpack: one key press, or one protocol gap, becomes a zip that explains the bug.
 *
 * This header includes what a host records and triggers with. Beside it are bugpack/heap_state.h
 * and bugpack/sample.h, which need no session, and bugpack/bindings.h. docs/EMBEDDING.md builds a
 * host step by step.
 */
#ifndef BUGPACK_BUGPACK_H
#define BUGPACK_BUGPACK_H

#include <bugpack/common.h>
#include <bugpack/condition.h>
#include <bugpack/crash.h>
#include <bugpack/disconnect.h>
#include <bugpack/error.h>
#include <bugpack/events.h>
#include <bugpack/export.h>
#include <bugpack/gap.h>
#include <bugpack/log.h>
#include <bugpack/notify.h>
#include <bugpack/provide.h>
#include <bugpack/recover.h>
#include <bugpack/report.h>
#include <bugpack/session.h>
#include <bugpack/traffic.h>
#include <bugpack/version.h>
#include <bugpack/watchdog.h>

#endif
