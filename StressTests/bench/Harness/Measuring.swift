extension Sample {
    /// Takes the time of some work, which returns its checksum.
    static func measuring(_ work: () throws -> Int) rethrows -> Sample {
        var checksum = 0
        let duration = try measuredWork { checksum = try work() }
        return Sample(duration: duration, checksum: checksum)
    }
}

/// Does some work, and returns how long that took.
///
/// `make bench-compare` counts the instructions of this function, which it finds by its name. It is dynamic so that the
/// compiler leaves it as it is: no copy for one of its callers, no part of another function.
@inline(never)
dynamic func measuredWork(_ work: () throws -> Void) rethrows -> Duration {
    let clock = ContinuousClock()
    let start = clock.now
    try work()
    return clock.now - start
}
