#ifndef FAKE_MACH_MACH_TIME_H
#define FAKE_MACH_MACH_TIME_H

#include <mach/mach.h>

typedef struct mach_timebase_info {
    uint32_t numer;
    uint32_t denom;
} mach_timebase_info_data_t;

kern_return_t mach_timebase_info(mach_timebase_info_data_t *info);
uint64_t mach_absolute_time(void);   /* stands still while the machine sleeps */
uint64_t mach_continuous_time(void); /* goes on */

#endif
