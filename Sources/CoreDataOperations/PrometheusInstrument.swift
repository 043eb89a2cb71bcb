import CoreDataEssentials
import Foundation
import StrataLocks

/// Counts events, and writes them in the text format of Prometheus.
///
/// See <doc:Instruments>.
///
/// ```swift
/// let metrics = PrometheusInstrument()
/// coordinator.instrument = metrics
/// // GET /metrics
/// respond(metrics.text(coordinator.statistics()), type: PrometheusInstrument.contentType)
/// ```
///
/// It has a histogram of durations for each kind of event, and counters of rows and of errors. Entities and contexts
/// are not labels, so the number of series does not grow. Any thread may use it; an event holds a mutex for some tens
/// of nanoseconds.
///
/// An addition to Apple's API.
public final class PrometheusInstrument: CoreDataInstrument {
    /// The upper bounds of a histogram's buckets, in seconds.
    public static let bounds: [Double] = [0.0001, 0.0005, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5]
    /// The content type of an HTTP response with the text.
    public static let contentType = "text/plain; version=0.0.4; charset=utf-8"

    private struct Series {
        var buckets = [UInt64](repeating: 0, count: PrometheusInstrument.bounds.count)
        var count: UInt64 = 0
        var seconds = 0.0
        var rows: UInt64 = 0
        var errors: UInt64 = 0
    }

    /// The counters by the kind of event, each with a separate mutex.
    private let series: [CoreDataEvent.Kind: Counter]

    private final class Counter: Sendable {
        let state = Locked(Series())
    }

    /// Makes an instrument that counts from zero.
    public init() {
        series = Dictionary(uniqueKeysWithValues: CoreDataEvent.Kind.allCases.map { ($0, Counter()) })
    }

    /// Counts an event.
    ///
    /// May be called on any thread.
    ///
    /// - Parameter event: The event. Its kind, its duration, its rows, and whether it has failed are counted.
    public func record(_ event: CoreDataEvent) {
        let seconds = event.seconds
        series[event.kind]?.state.withLock { series in
            series.count += 1
            series.seconds += seconds
            series.rows &+= UInt64(max(event.rows, 0))
            if event.errorCode != nil { series.errors += 1 }
            // Each bucket counts separately here; the text adds them up.
            if let place = Self.bounds.firstIndex(where: { seconds <= $0 }) { series.buckets[place] += 1 }
        }
    }

    /// The number of events of a kind.
    ///
    /// - Parameter kind: The kind to count.
    /// - Returns: The number since the instrument was made.
    public func count(of kind: CoreDataEvent.Kind) -> Int {
        series[kind].map { Int($0.state.withLock { $0.count }) } ?? 0
    }

    /// The text, in the format of Prometheus, of everything that was counted and of the gauges of a coordinator.
    ///
    /// - Parameter statistics: The statistics of the coordinator, for gauges of its pools, caches, contexts, logs and
    ///   histories; `nil` to omit them.
    /// - Returns: The text, each line with a line break at its end.
    public func text(_ statistics: CoreDataStatistics? = nil) -> String {
        var lines: [String] = []
        let all = CoreDataEvent.Kind.allCases.compactMap { kind in
            series[kind].map { (kind.rawValue, $0.state.withLock { $0 }) }
        }
        lines.append("# TYPE coredata_operation_seconds histogram")
        for (kind, series) in all where series.count > 0 {
            var sum: UInt64 = 0
            for (bound, count) in zip(Self.bounds, series.buckets) {
                sum += count
                lines.append("coredata_operation_seconds_bucket{kind=\"\(kind)\",le=\"\(bound)\"} \(sum)")
            }
            lines.append("coredata_operation_seconds_bucket{kind=\"\(kind)\",le=\"+Inf\"} \(series.count)")
            lines.append("coredata_operation_seconds_sum{kind=\"\(kind)\"} \(series.seconds)")
            lines.append("coredata_operation_seconds_count{kind=\"\(kind)\"} \(series.count)")
        }
        lines.append("# TYPE coredata_rows_total counter")
        for (kind, series) in all where series.count > 0 {
            lines.append("coredata_rows_total{kind=\"\(kind)\"} \(series.rows)")
        }
        lines.append("# TYPE coredata_errors_total counter")
        for (kind, series) in all where series.count > 0 {
            lines.append("coredata_errors_total{kind=\"\(kind)\"} \(series.errors)")
        }
        if let statistics { lines += Self.gauges(of: statistics) }
        return lines.map { $0 + "\n" }.joined()
    }

    private static func gauges(of statistics: CoreDataStatistics) -> [String] {
        var lines = ["# TYPE coredata_contexts gauge", "coredata_contexts \(statistics.contexts)"]
        func gauge(_ name: String, type: String = "gauge", _ value: (CoreDataStatistics.Store) -> String?) {
            let values = statistics.stores.compactMap { store in value(store).map { (store, $0) } }
            guard !values.isEmpty else { return }
            lines.append("# TYPE coredata_\(name) \(type)")
            for (store, value) in values { lines.append("coredata_\(name){store=\"\(label(store))\"} \(value)") }
        }
        gauge("row_cache_rows") { "\($0.cachedRows)" }
        gauge("row_cache_bytes") { "\($0.cachedBytes)" }
        gauge("row_cache_hits_total", type: "counter") { "\($0.cacheHits)" }
        gauge("row_cache_misses_total", type: "counter") { "\($0.cacheMisses)" }
        gauge("pool_readers") { $0.pool.map { "\($0.readers)" } }
        gauge("pool_readers_waiting") { $0.pool.map { "\($0.waitingReaders)" } }
        gauge("pool_writers_waiting") { $0.pool.map { "\($0.waitingWriters)" } }
        gauge("pinned_versions") { $0.pool.map { "\($0.pinnedVersions)" } }
        gauge("file_bytes") { $0.pool.map { "\($0.fileSize)" } }
        gauge("log_bytes") { $0.pool.map { "\($0.logSize)" } }
        gauge("history_age_seconds") { $0.historyAge.map { "\($0 / .seconds(1))" } }
        let lags = statistics.stores.flatMap { store in store.historyLag.map { (store, $0) } }
        if !lags.isEmpty { lines.append("# TYPE coredata_history_lag gauge") }
        for (store, lag) in lags {
            lines.append(
                "coredata_history_lag{store=\"\(label(store))\",consumer=\"\(escaped(lag.consumer))\"} \(lag.transactions)"
            )
        }
        return lines
    }

    private static func label(_ store: CoreDataStatistics.Store) -> String { escaped(store.name) }

    private static func escaped(_ text: String) -> String {
        text.replacing("\\", with: "\\\\").replacing("\"", with: "\\\"").replacing("\n", with: "\\n")
    }
}
