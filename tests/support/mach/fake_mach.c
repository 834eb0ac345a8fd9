/*
 * The Mach calls of the fake kernel, and the books of what they hand out.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <mach/mach.h>
#include <mach/mach_error.h>
#include <mach/mach_time.h>
#include <malloc/malloc.h>

#include "support/mach/fake_kernel.h"

enum { RIGHTS_MAX = 4096, LISTS_MAX = 512 };

/* A send right: the name that our task has for a thread, whether that lives or not. */
typedef struct right {
    mach_port_t name;
    uint64_t thread_id;
} right;

static right rights[RIGHTS_MAX];
static size_t right_count;
static struct {
    void *address;
    size_t bytes;
} lists[LISTS_MAX];
static size_t list_count;
static uint64_t rights_given;
static size_t wrong_releases;
static unsigned long release_count, refuse_nth;
static mach_port_t next_name = 0x1003;

mach_port_t mach_task_self_ = 0x103;

mach_fake_account mach_fake_outstanding(void) {
    mach_fake_account account = {.rights = right_count,
                                 .lists = list_count,
                                 .wrong_releases = wrong_releases,
                                 .rights_given = rights_given};
    for (size_t i = 0; i < list_count; i++) {
        account.list_bytes += lists[i].bytes;
    }
    return account;
}

void mach_fake_refuse_release(unsigned long nth) {
    mach_fake_hold();
    release_count = 0;
    refuse_nth = nth;
    mach_fake_leave();
}

static mach_fake_thread *find_thread(uint64_t id) {
    for (size_t i = 0; i < mach_fake.thread_count; i++) {
        if (mach_fake.threads[i].id == id) {
            return &mach_fake.threads[i];
        }
    }
    return NULL;
}

static right *find_right(mach_port_t name) {
    for (size_t i = 0; i < right_count; i++) {
        if (rights[i].name == name) {
            return &rights[i];
        }
    }
    return NULL;
}

/* A new name each time: that the same thread has another one in the next list is what Mach allows.
 */
static mach_port_t give_right(uint64_t thread_id) {
    if (right_count == RIGHTS_MAX) {
        return 0; /* whoever leaks so much is found out already */
    }
    next_name += 0x100;
    rights[right_count++] = (right){.name = next_name, .thread_id = thread_id};
    rights_given++;
    return next_name;
}

static kern_return_t give_list(thread_act_array_t *ret_list, mach_msg_type_number_t *ret_count) {
    if (list_count == LISTS_MAX) {
        return KERN_RESOURCE_SHORTAGE;
    }
    size_t bytes = mach_fake.thread_count * sizeof(thread_act_t);
    thread_act_t *list = malloc(bytes > 0 ? bytes : 1);
    if (list == NULL) {
        return KERN_RESOURCE_SHORTAGE;
    }
    for (size_t i = 0; i < mach_fake.thread_count; i++) {
        list[i] = give_right(mach_fake.threads[i].id);
    }
    lists[list_count].address = list;
    lists[list_count++].bytes = bytes;
    *ret_list = list;
    *ret_count = (mach_msg_type_number_t)mach_fake.thread_count;
    return KERN_SUCCESS;
}

kern_return_t task_threads(task_t task, thread_act_array_t *list, mach_msg_type_number_t *count) {
    bool works = mach_fake_enter("task_threads");
    kern_return_t result = mach_fake_mach_code();
    if (works) {
        result = task == mach_task_self_ ? give_list(list, count) : KERN_INVALID_ARGUMENT;
    }
    mach_fake_leave();
    return result;
}

kern_return_t mach_port_deallocate(task_t task, mach_port_t name) {
    (void)mach_fake_enter("mach_port_deallocate");
    right *found = task == mach_task_self_ ? find_right(name) : NULL;
    kern_return_t result = KERN_SUCCESS;
    if (++release_count == refuse_nth) {
        result = KERN_FAILURE;
    } else if (found == NULL) {
        wrong_releases++;
        result = KERN_INVALID_NAME;
    } else {
        *found = rights[--right_count];
    }
    mach_fake_leave();
    return result;
}

kern_return_t vm_deallocate(task_t task, vm_address_t address, vm_size_t size) {
    (void)mach_fake_enter("vm_deallocate");
    kern_return_t result = KERN_INVALID_ADDRESS;
    for (size_t i = 0; task == mach_task_self_ && i < list_count; i++) {
        if ((vm_address_t)lists[i].address == address && lists[i].bytes == size) {
            free(lists[i].address);
            lists[i] = lists[--list_count];
            result = KERN_SUCCESS;
            break;
        }
    }
    wrong_releases += result != KERN_SUCCESS;
    mach_fake_leave();
    return result;
}

static natural_t *give_numbers(size_t count) {
    natural_t *numbers = list_count < LISTS_MAX ? calloc(count + 1, sizeof *numbers) : NULL;
    if (numbers != NULL) {
        lists[list_count].address = numbers;
        lists[list_count++].bytes = count * sizeof *numbers;
    }
    return numbers;
}

kern_return_t mach_port_names(task_t task, mach_port_name_array_t *names,
                              mach_msg_type_number_t *name_count, mach_port_type_array_t *types,
                              mach_msg_type_number_t *type_count) {
    (void)mach_fake_enter("mach_port_names");
    *names = task == mach_task_self_ ? give_numbers(right_count) : NULL;
    *types = task == mach_task_self_ ? give_numbers(right_count) : NULL;
    bool works = *names != NULL && *types != NULL;
    for (size_t i = 0; works && i < right_count; i++) {
        (*names)[i] = rights[i].name;
        (*types)[i] = MACH_PORT_TYPE_SEND;
    }
    *name_count = *type_count = (mach_msg_type_number_t)right_count;
    mach_fake_leave();
    return works ? KERN_SUCCESS : KERN_RESOURCE_SHORTAGE;
}

kern_return_t mach_port_get_refs(task_t task, mach_port_name_t name, mach_port_right_t right_kind,
                                 mach_port_urefs_t *refs) {
    (void)mach_fake_enter("mach_port_get_refs");
    bool works = task == mach_task_self_ && find_right(name) != NULL;
    *refs = right_kind == MACH_PORT_RIGHT_SEND;
    mach_fake_leave();
    return works ? KERN_SUCCESS : KERN_INVALID_NAME;
}

/* As a kernel that keeps its table to itself. */
kern_return_t mach_port_space_info(task_t task, ipc_info_space_t *space,
                                   ipc_info_name_array_t *names, mach_msg_type_number_t *name_count,
                                   ipc_info_tree_name_array_t *tree,
                                   mach_msg_type_number_t *tree_count) {
    (void)task;
    (void)space;
    (void)names;
    (void)name_count;
    (void)tree;
    (void)tree_count;
    return KERN_FAILURE;
}

/* What the leaking builds call instead of the two: see CMakeLists.txt. */
kern_return_t mach_fake_keep_right(task_t task, mach_port_t name);
kern_return_t mach_fake_keep_list(task_t task, vm_address_t address, vm_size_t size);

kern_return_t mach_fake_keep_right(task_t task, mach_port_t name) {
    (void)task;
    (void)name;
    return KERN_SUCCESS;
}

kern_return_t mach_fake_keep_list(task_t task, vm_address_t address, vm_size_t size) {
    (void)task;
    (void)address;
    (void)size;
    return KERN_SUCCESS;
}

static uint64_t ticks_of_us(uint64_t microseconds) {
    return microseconds * (mach_fake.kernel_hertz / 1000000);
}

static kern_return_t answer_task(task_flavor_t flavor, void *info, mach_msg_type_number_t *count) {
    uint64_t user_us = 0, system_us = 0;
    for (size_t i = 0; i < mach_fake.thread_count; i++) {
        user_us += mach_fake.threads[i].user_us;
        system_us += mach_fake.threads[i].system_us;
    }
    if (flavor == TASK_ABSOLUTETIME_INFO && *count >= TASK_ABSOLUTETIME_INFO_COUNT) {
        task_absolutetime_info_data_t times = {.total_user =
                                                   ticks_of_us(user_us + mach_fake.ended_us),
                                               .total_system = ticks_of_us(system_us),
                                               .threads_user = ticks_of_us(user_us),
                                               .threads_system = ticks_of_us(system_us)};
        memcpy(info, &times, sizeof times);
        return KERN_SUCCESS;
    }
    if (flavor == MACH_TASK_BASIC_INFO && *count >= MACH_TASK_BASIC_INFO_COUNT) {
        mach_task_basic_info_data_t basic = {.virtual_size = mach_fake.virtual_bytes,
                                             .resident_size = mach_fake.resident_bytes};
        memcpy(info, &basic, sizeof basic);
        return KERN_SUCCESS;
    }
    return KERN_INVALID_ARGUMENT;
}

kern_return_t task_info(task_t task, task_flavor_t flavor, integer_t *info,
                        mach_msg_type_number_t *count) {
    bool works =
        mach_fake_enter(flavor == MACH_TASK_BASIC_INFO ? "task_info(MACH_TASK_BASIC_INFO)"
                                                       : "task_info(TASK_ABSOLUTETIME_INFO)");
    kern_return_t result = mach_fake_mach_code();
    if (works) {
        result = task == mach_task_self_ ? answer_task(flavor, info, count) : KERN_INVALID_ARGUMENT;
    }
    mach_fake_leave();
    return result;
}

static time_value_t time_value(uint64_t microseconds) {
    return (time_value_t){.seconds = (integer_t)(microseconds / 1000000),
                          .microseconds = (integer_t)(microseconds % 1000000)};
}

static kern_return_t answer_thread(const mach_fake_thread *thread, thread_flavor_t flavor,
                                   void *info, mach_msg_type_number_t *count) {
    if (flavor == THREAD_BASIC_INFO && *count >= THREAD_BASIC_INFO_COUNT) {
        thread_basic_info_data_t basic = {.user_time = time_value(thread->user_us),
                                          .system_time = time_value(thread->system_us)};
        memcpy(info, &basic, sizeof basic);
        return KERN_SUCCESS;
    }
    if (flavor == THREAD_IDENTIFIER_INFO && *count >= THREAD_IDENTIFIER_INFO_COUNT) {
        thread_identifier_info_data_t identifier = {.thread_id = thread->id};
        memcpy(info, &identifier, sizeof identifier);
        return KERN_SUCCESS;
    }
    return KERN_INVALID_ARGUMENT;
}

kern_return_t thread_info(thread_act_t port, thread_flavor_t flavor, integer_t *info,
                          mach_msg_type_number_t *count) {
    static const kern_return_t deaths[] = {KERN_TERMINATED, KERN_INVALID_ARGUMENT,
                                           MACH_SEND_INVALID_DEST};
    bool works =
        mach_fake_enter(flavor == THREAD_BASIC_INFO ? "thread_info(THREAD_BASIC_INFO)"
                                                    : "thread_info(THREAD_IDENTIFIER_INFO)");
    kern_return_t result = mach_fake_mach_code();
    const right *found = find_right(port);
    if (works && found == NULL) {
        wrong_releases++; /* asked with a right that was given back, or never had */
        result = MACH_SEND_INVALID_DEST;
    } else if (works) {
        const mach_fake_thread *thread = find_thread(found->thread_id);
        result = thread != NULL ? answer_thread(thread, flavor, info, count)
                                : deaths[found->thread_id % 3];
    }
    mach_fake_leave();
    return result;
}

pthread_t pthread_from_mach_thread_np(mach_port_t port) {
    bool works = mach_fake_enter("pthread_from_mach_thread_np");
    const right *found = find_right(port);
    const mach_fake_thread *thread = found != NULL ? find_thread(found->thread_id) : NULL;
    pthread_t result = works && thread != NULL && thread->is_pthread ? (pthread_t)port : 0;
    mach_fake_leave();
    return result;
}

int mach_fake_getname(pthread_t pthread, char *name, size_t name_bytes) {
    bool works = mach_fake_enter("pthread_getname_np");
    const right *found = find_right((mach_port_t)pthread);
    const mach_fake_thread *thread = found != NULL ? find_thread(found->thread_id) : NULL;
    int result = works && thread != NULL && name_bytes >= sizeof thread->name ? 0 : 3;
    if (result == 0) {
        memcpy(name, thread->name, sizeof thread->name);
    }
    mach_fake_leave();
    return result;
}

char *mach_error_string(int error) {
    static char text[] = "(os/kern) some failure";
    (void)error;
    return text;
}

kern_return_t mach_timebase_info(mach_timebase_info_data_t *info) {
    bool works = mach_fake_enter("mach_timebase_info");
    if (works) {
        *info = (mach_timebase_info_data_t){.numer = mach_fake.numer, .denom = mach_fake.denom};
    }
    mach_fake_leave();
    return works ? KERN_SUCCESS : mach_fake_mach_code();
}

uint64_t mach_absolute_time(void) {
    mach_fake_hold();
    uint64_t ticks = mach_fake.absolute;
    mach_fake_leave();
    return ticks;
}

uint64_t mach_continuous_time(void) {
    mach_fake_hold();
    uint64_t ticks = mach_fake.absolute + mach_fake.asleep_ns / mach_fake.numer * mach_fake.denom;
    mach_fake_leave();
    return ticks;
}

void malloc_zone_statistics(void *zone, malloc_statistics_t *stats) {
    if (zone == NULL) {
        *stats = (malloc_statistics_t){.size_in_use = (size_t)mach_fake.heap_used_bytes,
                                       .size_allocated = (size_t)mach_fake.heap_held_bytes};
    }
}
