/*
 * The single contract between bugpack and the operating system. Each header below is implemented
 * once per system: linux/, darwin/ and stub/ (and posix/ for what every Unix shares). Acquiring is
 * thin; what turns bytes into values is pure, lives beside it, and is tested on recorded data
 * everywhere.
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
