// C++ programs with one sickness each: diagnose_sick_cpp NAME.
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

#include <condition_variable>
#include <future>
#include <mutex>
#include <thread>
#include <unistd.h>

namespace viewer {

struct no_such_channel : std::runtime_error {
    using std::runtime_error::runtime_error;
};

class picture {
  public:
    __attribute__((noinline)) void decode() {
        for (volatile std::uint64_t i = 0;; i++) {}
    }
};

void say_ready() {
    std::puts("ready");
    std::fflush(stdout);
}

void spin() {
    say_ready();
    picture().decode();
}

void throw_uncaught() {
    throw no_such_channel("channel 7 is not open");
}

void throw_in_thread() {
    std::thread([] { std::vector<int>().at(3); }).join();
}

/* A constructor that calls what only the derived class has. */
struct channel {
    channel() {
        open();
    }
    virtual ~channel() = default;
    void open() {
        connect();
    }
    virtual void connect() = 0;
};

struct display_channel : channel {
    void connect() override {
    }
};

void call_pure_virtual() {
    display_channel();
}

/* A lock that its owner holds while it waits for another thread. */
void lock_held() {
    std::mutex lock, other;
    std::condition_variable changed;
    bool is_held = false;
    std::thread holder([&] {
        std::lock_guard<std::mutex> ours(lock);
        {
            std::lock_guard<std::mutex> guard(other);
            is_held = true;
        }
        changed.notify_all();
        pause();
    });
    {
        std::unique_lock<std::mutex> guard(other);
        changed.wait(guard, [&] { return is_held; });
    }
    say_ready();
    lock.lock();
}

__attribute__((noinline)) int fetch_result(std::promise<int> &promise) {
    return promise.get_future().get() + 1;
}

void future_never_set() {
    std::promise<int> promise;
    std::thread fetcher([&] { (void)fetch_result(promise); });
    say_ready();
    fetcher.join();
}

} // namespace viewer

int main(int argument_count, char **arguments) {
    static const struct {
        const char *name;
        void (*run)();
    } programs[] = {{"cpp-spin", viewer::spin},
                    {"cpp-exception", viewer::throw_uncaught},
                    {"cpp-exception-in-thread", viewer::throw_in_thread},
                    {"pure-virtual", viewer::call_pure_virtual},
                    {"cpp-lock-held", viewer::lock_held},
                    {"cpp-future-never-set", viewer::future_never_set}};
    for (const auto &program : programs) {
        if (argument_count == 2 && std::strcmp(arguments[1], program.name) == 0) {
            program.run();
            return 0;
        }
    }
    return 2;
}
