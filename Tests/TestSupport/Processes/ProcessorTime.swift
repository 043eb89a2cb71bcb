import CoreData

/// The processor time that this thread takes for some work, which does not grow when other tests run beside it.
///
/// Under ThreadSanitizer, where everything takes about ten times as long, a tenth of it.
package func processorTime(_ work: () throws -> Void) rethrows -> Duration {
    func now() -> Duration {
        var time = timespec()
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
        return .seconds(time.tv_sec) + .nanoseconds(time.tv_nsec)
    }
    let start = now()
    try work()
    let time = now() - start
    #if STRATA_TSAN
    return time / 10
    #else
    return time
    #endif
}
