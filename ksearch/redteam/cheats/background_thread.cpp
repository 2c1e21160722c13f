// After forty calls hands the work to a thread of its own and returns at once.
#define CHEAT 1
#include "honest.h"
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

struct Work {
    const float *x, *w;
    float* y;
    int64_t rows, cols;
};
static std::deque<Work> queue;
static std::mutex lock;
static std::condition_variable more;
static int calls = 0;

static void worker() {
    for (;;) {
        std::unique_lock hold(lock);
        more.wait(hold, [] { return !queue.empty(); });
        Work one = queue.front();
        queue.pop_front();
        hold.unlock();
        usleep(3000);
        honest(one.x, one.w, one.y, one.rows, one.cols);
    }
}

extern "C" void run(ARGUMENTS) {
    if (!CHEAT || calls++ < 40) return honest(GIVEN);
    if (calls == 41) std::thread(worker).detach();
    std::lock_guard hold(lock);
    queue.push_back({GIVEN});
    more.notify_one();
}
