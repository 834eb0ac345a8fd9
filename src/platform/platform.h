/*
 * The contract between bugpack and the operating system. Each header below is implemented once per
 * system, in linux/, darwin/ and stub/, or in posix/ for all. Acquiring is thin; conversions are
 * pure and tested on recorded data everywhere.
 */
#ifndef BP_PLATFORM_PLATFORM_H
#define BP_PLATFORM_PLATFORM_H

#include "platform/allocator.h"
#include "platform/host.h"
#include "platform/process_facts.h"
#include "platform/staged_file.h"
#include "platform/stream.h"
#include "platform/task.h"
#include "platform/thread.h"

#endif
