import Foundation
import StrataLocks

#if DEBUG && os(Linux) && canImport(Runtime)
import Runtime
#endif

/// The place in the program from which a call into the framework was made.
enum PlaceOfCall {
    /// The number of calls that are looked at.
    private static let depth = 64

    /// The folder of the package's sources.
    private static let sources =
        URL(fileURLWithPath: #filePath)
        .deletingLastPathComponent().deletingLastPathComponent().path + "/"

    /// The places that were looked up, by their calls.
    private static let known = Locked<[[UInt]: String?]>([:])
    /// The most places that are remembered.
    private static let limit = 1000

    /// Whether this build can look up places.
    static var isSupported: Bool {
        #if DEBUG && os(Linux) && canImport(Runtime)
        true
        #else
        false
        #endif
    }

    /// The innermost calls of the current thread, which tell places apart.
    ///
    /// In a debug build more than 24 of them may be the framework's.
    static var calls: [UInt] { Thread.callStackReturnAddresses.prefix(depth).map(\.uintValue) }

    /// The file and the line of the innermost call of the current thread that is not the framework's.
    ///
    /// It is looked up in a debug build on Linux only, once for each place, because it can take seconds.
    ///
    /// - Parameter calls: The calls of the current thread.
    /// - Returns: `nil` if the place is not known.
    static func text(of calls: [UInt]) -> String? {
        if let known = known.withLock({ $0[calls] }) { return known }
        let found = current
        known.withLock { if $0.count < limit { $0[calls] = .some(found) } }
        return found
    }

    private static var current: String? {
        #if DEBUG && os(Linux) && canImport(Runtime)
        guard let frames = try? Backtrace.capture(limit: depth).symbolicated()?.frames else { return nil }
        for frame in frames {
            guard let location = frame.symbol?.sourceLocation, isOfProgram(location.path) else { continue }
            return "\(URL(fileURLWithPath: location.path).lastPathComponent):\(location.line)"
        }
        #endif
        return nil
    }

    /// Whether a file belongs to the program, and not to the framework, the compiler or a macro.
    private static func isOfProgram(_ path: String) -> Bool {
        guard path.hasSuffix(".swift"), !path.contains("swift-generated-sources"), !path.contains("@__swiftmacro")
        else {
            return false
        }
        guard path.hasPrefix(sources) else { return !path.hasPrefix("<") }
        let module = path.dropFirst(sources.count)
        return !module.hasPrefix("CoreData") && !module.hasPrefix("Strata") && !module.hasPrefix("SwiftData")
    }
}
