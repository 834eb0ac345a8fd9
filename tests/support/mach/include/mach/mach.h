/*
 * The smallest mach/mach.h that src/core/platform/darwin compiles against on Linux. Types, values
 * and the members that are used are those of Apple's headers; fake_mach.c answers the calls.
 */
#ifndef FAKE_MACH_MACH_H
#define FAKE_MACH_MACH_H

#include <stdint.h>

typedef int kern_return_t;
typedef int integer_t;
typedef unsigned int natural_t;
typedef natural_t mach_port_t;
typedef mach_port_t task_t;
typedef mach_port_t thread_act_t;
typedef thread_act_t *thread_act_array_t;
typedef natural_t mach_msg_type_number_t;
typedef natural_t task_flavor_t;
typedef natural_t thread_flavor_t;
typedef uintptr_t vm_address_t;
typedef uintptr_t vm_size_t;

#define KERN_SUCCESS 0
#define KERN_NO_SPACE 3
#define KERN_INVALID_ARGUMENT 4
#define KERN_FAILURE 5
#define KERN_RESOURCE_SHORTAGE 6
#define KERN_INVALID_NAME 15
#define KERN_INVALID_ADDRESS 1
#define KERN_TERMINATED 37
#define MACH_SEND_INVALID_DEST 0x10000003

typedef struct time_value {
    integer_t seconds;
    integer_t microseconds;
} time_value_t;

#define MACH_TASK_BASIC_INFO 20
typedef struct mach_task_basic_info {
    uint64_t virtual_size;
    uint64_t resident_size;
    uint64_t resident_size_max;
    time_value_t user_time;   /* of threads that have ended */
    time_value_t system_time; /* of threads that have ended */
    integer_t policy;
    integer_t suspend_count;
} mach_task_basic_info_data_t;
#define MACH_TASK_BASIC_INFO_COUNT (sizeof(mach_task_basic_info_data_t) / sizeof(natural_t))

#define TASK_ABSOLUTETIME_INFO 1
typedef struct task_absolutetime_info {
    uint64_t total_user;
    uint64_t total_system;
    uint64_t threads_user;   /* of living threads only */
    uint64_t threads_system; /* of living threads only */
} task_absolutetime_info_data_t;
#define TASK_ABSOLUTETIME_INFO_COUNT                                                               \
    ((mach_msg_type_number_t)(sizeof(task_absolutetime_info_data_t) / sizeof(natural_t)))

#define THREAD_BASIC_INFO 3
typedef struct thread_basic_info {
    time_value_t user_time;
    time_value_t system_time;
    integer_t cpu_usage;
    integer_t policy;
    integer_t run_state;
    integer_t flags;
    integer_t suspend_count;
    integer_t sleep_time;
} thread_basic_info_data_t;
#define THREAD_BASIC_INFO_COUNT                                                                    \
    ((mach_msg_type_number_t)(sizeof(thread_basic_info_data_t) / sizeof(natural_t)))

#define THREAD_IDENTIFIER_INFO 4
typedef struct thread_identifier_info {
    uint64_t thread_id;
    uint64_t thread_handle;
    uint64_t dispatch_qaddr;
} thread_identifier_info_data_t;
#define THREAD_IDENTIFIER_INFO_COUNT                                                               \
    ((mach_msg_type_number_t)(sizeof(thread_identifier_info_data_t) / sizeof(natural_t)))

extern mach_port_t mach_task_self_;
#define mach_task_self() mach_task_self_

kern_return_t task_info(task_t task, task_flavor_t flavor, integer_t *info,
                        mach_msg_type_number_t *count);
kern_return_t task_threads(task_t task, thread_act_array_t *list, mach_msg_type_number_t *count);
kern_return_t thread_info(thread_act_t thread, thread_flavor_t flavor, integer_t *info,
                          mach_msg_type_number_t *count);
kern_return_t mach_port_deallocate(task_t task, mach_port_t name);
kern_return_t vm_deallocate(task_t task, vm_address_t address, vm_size_t size);

/* What tests/macos asks. */
typedef natural_t mach_port_name_t;
typedef natural_t mach_port_type_t;
typedef natural_t mach_port_right_t;
typedef natural_t mach_port_urefs_t;
typedef mach_port_name_t *mach_port_name_array_t;
typedef mach_port_type_t *mach_port_type_array_t;
typedef struct ipc_info_space {
    natural_t iis_table_size;
} ipc_info_space_t;
typedef struct ipc_info_name {
    mach_port_name_t iin_name;
} * ipc_info_name_array_t;
typedef struct ipc_info_tree_name {
    mach_port_name_t iitn_lchild;
} * ipc_info_tree_name_array_t;

#define MACH_PORT_RIGHT_SEND 0
#define MACH_PORT_RIGHT_DEAD_NAME 4
#define MACH_PORT_TYPE_SEND (1u << 16)
#define MACH_PORT_TYPE_DEAD_NAME (1u << 20)

kern_return_t mach_port_names(task_t task, mach_port_name_array_t *names,
                              mach_msg_type_number_t *name_count, mach_port_type_array_t *types,
                              mach_msg_type_number_t *type_count);
kern_return_t mach_port_get_refs(task_t task, mach_port_name_t name, mach_port_right_t right,
                                 mach_port_urefs_t *refs);
kern_return_t mach_port_space_info(task_t task, ipc_info_space_t *space,
                                   ipc_info_name_array_t *names, mach_msg_type_number_t *name_count,
                                   ipc_info_tree_name_array_t *tree,
                                   mach_msg_type_number_t *tree_count);

#endif
