/*
 * A program that dies of an exception, in the way that its first argument names. With a directory
 * it is a host whose crash handler records that; with a third argument, std::terminate says it,
 * too.
 */
#include <bugpack/bugpack.hpp>

#include <cstdlib>
#include <cstring>
#include <exception>
#include <new>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>

namespace viewer {

struct torn : std::runtime_error {
    using std::runtime_error::runtime_error;
};
struct side {
    virtual ~side() = default;
    int number = 1;
};
struct beside : side, torn {
    beside() : torn("the second base") {
    }
};
struct own_words : std::exception {
    const char *what() const noexcept override {
        return "words of its own";
    }
};
struct silent {};

const char *mode;

bool is(const char *name) {
    return std::strcmp(mode, name) == 0;
}

[[noreturn]] void fail() {
    if (is("beside")) {
        throw beside();
    } else if (is("own-words")) {
        throw own_words();
    } else if (is("silent")) {
        throw silent();
    } else if (is("text")) {
        throw "a text";
    } else if (is("string")) {
        throw std::string("a string");
    } else if (is("number")) {
        throw 42;
    } else if (is("memory")) {
        throw std::bad_alloc();
    } else if (is("system")) {
        throw std::system_error(2, std::generic_category(), "cannot open x");
    }
    throw torn("the picture is torn");
}

void fail_silently() noexcept {
    fail();
}

void run() {
    if (is("thread")) {
        std::thread(fail).join();
    } else if (is("noexcept")) {
        fail_silently();
    } else if (is("abort")) {
        std::abort();
    } else if (is("handled")) {
        try {
            fail();
        } catch (const std::exception &) {}
        std::abort();
    } else if (is("again")) {
        try {
            fail();
        } catch (const std::exception &) {
            throw;
        }
    } else if (is("pointer")) {
        std::exception_ptr held;
        try {
            fail();
        } catch (...) {
            held = std::current_exception();
        }
        std::rethrow_exception(held);
    } else if (is("quiet")) {
        std::set_terminate([] { std::abort(); });
    }
    fail();
}

} // namespace viewer

int main(int count, char **arguments) {
    bugpack::session session;
    if (count < 2) {
        return 2;
    }
    viewer::mode = arguments[1];
    if (count > 2) {
        bugpack::options options;
        options.app_name = viewer::mode;
        options.report_dir = options.recorder.dir = arguments[2];
        session = bugpack::session(options);
        if (session.install_crash_handler() != BUGPACK_OK) {
            return 2;
        }
        if (count > 3) {
            session.record_uncaught();
        }
    }
    viewer::run();
}
