/*
 * The process that the reports of a session are about: this one, another one, or none.
 */
#ifndef BP_REPORT_SUBJECT_H
#define BP_REPORT_SUBJECT_H

#include <stdatomic.h>
#include <stdbool.h>

#include "base/aside.h"
#include "base/lock.h"
#include "model/metadata.h"
#include "platform/crash_page.h"
#include "process/sampler.h"
#include "report/config.h"
#include "report/writer.h"

/* Facts as they are kept. */
typedef struct bp_known_facts {
    bp_buffer text; /* process.json; empty: nothing is known yet */
    uint64_t wall_ns;
    bp_task_program program; /* "" where it is not known */
    char denied[512];
} bp_known_facts;

/* A process with its start, which identify it; as in platform/task.h. */
typedef struct bp_subject_process {
    pid_t pid;
    uint64_t birth; /* 0: not known */
} bp_subject_process;

/* Counted by references: a provider that hangs outlives the session. */
typedef struct bp_subject {
    /* Its pid is 0 where the session is about its own process, or none. */
    bp_metadata_target target;
    /* It was added to another one: what is about the machine is in the report already. */
    bool is_further;
    /* Unwinds its stacks; NULL, the default: this process does. Set before the first report. */
    bp_aside_runner *run_aside;
    /* The stacks of the target are those of this page, which is borrowed for good: it has crashed.
     * Set before the report about that; NULL, as at first: it has not. */
    const bp_crash_page *_Atomic crash;

    /* Private from here on. */
    _Atomic(struct bp_subject *) next; /* set once, under the lock of the first */
    atomic_uint reference_count;
    bool has_descendants;
    bp_sampler *sampler; /* NULL: sampler_error says why */
    bugpack_error sampler_error;
    _Atomic(uint64_t) image;   /* when the last report began; 0: not known */
    atomic_bool is_refreshing; /* by a thread of its own */
    bp_lock reading;           /* held while the facts are read */
    bp_lock lock;              /* of what follows; no file of the process is read under it */
    bp_known_facts facts;
    bp_task_program followed; /* the newest that was seen */
    uint64_t follow_due_ns, follow_interval_ns;
    bp_subject_process *noted;
    size_t noted_count;
    uint64_t due_ns, interval_ns; /* of the refresh */
} bp_subject;

/*
 * Opens the process that the config names. Our own process without a sampler is no failure: the
 * reports say why there are no metrics. Errors: those of bp_sampler_open for a target_pid.
 */
bugpack_status bp_subject_open(const bp_config *config, bp_subject **ret_subject,
                               bugpack_error *error);
bp_subject *bp_subject_retain(bp_subject *subject);
/* The last drop of the first one drops those that were added to it. */
void bp_subject_drop(bp_subject *subject);

/* More in one report would have more descriptors and entries than there may be. */
enum { BP_SUBJECT_MAX = 256 };

/*
 * Opens a further process, whose entries go below "processes/<pid>-<name>/", and adds it to those
 * of the session's `first` one. It is borrowed, and lasts as long as `first`. Any thread. Errors:
 * those of bp_sampler_open; INVALID: it was added before; LIMIT.
 */
bugpack_status bp_subject_add(bp_subject *first, pid_t pid, bp_subject **ret_subject,
                              bugpack_error *error);

/* The process that was added after this one; NULL: none. */
bp_subject *bp_subject_next(const bp_subject *subject);

/* The name of an entry about the process, in `out` where it is a further one. The name of the
 * process is in it as it is, except for slashes: a bundle makes a word of it, without secrets. */
enum { BP_SUBJECT_NAME_BYTES = 160 };
const char *bp_subject_entry(const bp_subject *subject, const char *entry,
                             char out[BP_SUBJECT_NAME_BYTES]);

/* The age of the process; 0 where that is not known. The worker's thread, as the sampler.
 */
uint64_t bp_subject_uptime(const bp_subject *subject);

/*
 * With descendants: remembers the processes of a snapshot. A process whose parent has ended is no
 * longer found below the target, and still belongs to the subject. Never waits: when the facts are
 * being read, the snapshot is passed over.
 */
void bp_subject_note(bp_subject *subject, const bp_task_snapshot *snapshot);

/* The target, and its descendants as they are now or were noted; some may have ended. The caller
 * frees the list. NO_MEMORY. */
bugpack_status bp_subject_list(bp_subject *subject, bp_subject_process **ret_processes,
                               size_t *ret_count, bugpack_error *error);

/* A report begins: what another process executes now is what the report is about. Worker. */
void bp_subject_begin(bp_subject *subject);

/* Fails where it has executed another program since. NO_PROCESS. Any thread. */
bugpack_status bp_subject_check_program(const bp_subject *subject, bugpack_error *error);

/* After a reading by id: fails unless the target is still the process that the session opened, so
 * that nobody else had its id, and executes the same program. NO_PROCESS. */
bugpack_status bp_subject_check(const bp_subject *subject, bugpack_error *error);

/* NULL, and the reason, where there is none. The sampler is the worker's; its task may be cloned.
 */
bp_sampler *bp_subject_sampler(const bp_subject *subject, bugpack_error *error);

/* Frees what the samplers of this and all further processes keep for reports that waited. */
void bp_subject_forget_samples(bp_subject *subject);

/* Writes process.json: as the process is now or, where another process has ended, as it was when
 * it was read last. */
bugpack_status bp_subject_write_facts(bp_subject *subject, bugpack_writer *writer,
                                      bugpack_error *error);

/* Reads the facts of another process and keeps them for when it has ended. INVALID without one. */
bugpack_status bp_subject_refresh(bp_subject *subject, bugpack_error *error);

/*
 * The same on a thread of its own when it is due: a second after the opening, and then at growing
 * intervals up to a minute; and where the process has executed another program since. That is
 * looked for soon after a reading, then at growing intervals up to a second, as a command may do so
 * at once and end soon. Returns when it wants to be called again at the latest. One thread.
 */
uint64_t bp_subject_follow(bp_subject *subject, uint64_t now_ns);

/* Waits for such a thread up to 200 ms: a dead server of files may keep it. False: it goes on. NULL
 * is fine. */
bool bp_subject_end_refresh(const bp_subject *subject);

#endif
