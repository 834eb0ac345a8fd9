// The same in C++, with templates, virtual functions and an exception.
#include <cstdint>
#include <functional>
#include <map>
#include <stdexcept>
#include <string>

namespace market {

template <typename Number> struct Pricer {
    virtual ~Pricer() = default;
    virtual Number price(Number end) const = 0;
};

template <typename Number> struct PrimePricer : Pricer<Number> {
    __attribute__((noinline)) Number price(Number end) const override {
        Number count = 0;
        for (Number i = 2; i < end; i++) {
            bool is_prime = true;
            for (Number j = 2; j * j <= i && is_prime; j++) {
                is_prime = i % j != 0;
            }
            count += is_prime;
        }
        return count;
    }
};

} // namespace market

static volatile std::uint64_t sink;

__attribute__((noinline)) static void serve(const market::Pricer<std::uint32_t> &pricer) {
    for (;;) {
        sink = sink + pricer.price(4000);
        try {
            throw std::runtime_error("none");
        } catch (const std::exception &) {}
    }
}

int main() {
    std::function<void()> run = [] { serve(market::PrimePricer<std::uint32_t>()); };
    run();
}
