// The same host in C++17: the public headers must be good C++ as well.
#include <iostream>
#include <string>

#include <bugpack/bugpack.h>

int main(int argc, char **argv) {
    if (argc != 2) {
        std::cerr << "usage: consumer DIRECTORY\n";
        return 2;
    }
    static_cast<void>(argv);
    if (std::string(bugpack_version()) != BUGPACK_VERSION) {
        std::cerr << "headers " << BUGPACK_VERSION << ", library " << bugpack_version() << '\n';
        return 1;
    }
    std::cout << "bugpack " << bugpack_version() << '\n';
    return 0;
}
