import CoreData
import Expectations
import Testing

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

/// Expects that the processor time of some work grows by less than a factor where there is more to do.
///
/// Other work on the machine only adds time, so the shortest rounds are compared. There are further rounds, up to ten, until the factor holds.
///
/// - Parameters:
///   - limit: The factor.
///   - small: Does the work where there is little, and returns its time.
///   - large: Does it where there is much.
///   - fileID: The file of the call. Callers pass neither this nor the next three.
///   - filePath: The path of the file.
///   - line: The line of the call.
///   - column: The column of the call.
package func expectGrowth(
    below limit: Double,
    from small: () throws -> Duration,
    to large: () throws -> Duration,
    fileID: String = #fileID,
    filePath: String = #filePath,
    line: Int = #line,
    column: Int = #column
) rethrows {
    var shortest = (small: Duration.seconds(1_000_000), large: Duration.seconds(1_000_000))
    for _ in 0..<10 {
        shortest = (min(shortest.small, try small()), min(shortest.large, try large()))
        if shortest.large < shortest.small * limit { return }
    }
    expect(
        false,
        "\(shortest.large) where there is much, \(shortest.small) where there is little",
        fileID: fileID,
        filePath: filePath,
        line: line,
        column: column
    )
}
