// The same host in C++17: the public headers and initialisers must be good C++ as well.
#include <iostream>
#include <string>

#include <bugpack/bugpack.h>

int main(int argc, char **argv) {
    if (argc != 2) {
        std::cerr << "usage: consumer DIRECTORY\n";
        return 2;
    }
    if (std::string(bugpack_version()) != BUGPACK_VERSION) {
        std::cerr << "headers " << BUGPACK_VERSION << ", library " << bugpack_version() << '\n';
        return 1;
    }
    bugpack_options options = BUGPACK_OPTIONS_INIT;
    bugpack_error error = BUGPACK_ERROR_INIT;
    bugpack_report_request request = BUGPACK_REPORT_REQUEST_INIT;
    bugpack_session *session = nullptr;
    options.app_name = "consumer++";
    options.report_dir = argv[1];
    options.sample_window_ms = 10;
    if (bugpack_open(&options, &session, &error) != BUGPACK_OK) {
        std::cerr << "consumer: " << error.message << '\n';
        return 1;
    }
    bugpack_log(session, BUGPACK_LEVEL_INFO, nullptr, "hello from %s", argv[0]);
    bugpack_log(session, BUGPACK_LEVEL_WARN, nullptr, "nothing but a format");
    request.description = "from C++";
    bugpack_report_result result = BUGPACK_REPORT_RESULT_INIT;
    const bugpack_status status = bugpack_report(session, &request, &result, NULL);
    bugpack_close(session);
    if (status != BUGPACK_OK) {
        std::cerr << "consumer: " << result.error.message << '\n';
        return 1;
    }
    std::cout << "bugpack " << bugpack_version() << " wrote " << result.path << '\n';
    return 0;
}
