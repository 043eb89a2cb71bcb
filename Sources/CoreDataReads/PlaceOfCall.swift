import Foundation
import StrataLocks

/// The place in the program from which a call into the framework was made.
///
/// It is looked up in the program's file. That stops no thread, so it is safe beside others. It costs some milliseconds for
/// each hundred thousand symbols.
struct PlaceOfCall: Sendable {
    /// The function, such as `ListView.show`; `nil` in a program without symbols, and if no call is the program's.
    var function: String?
    /// The file and the line, such as `ListView.swift:12`; `nil` in a program without debug information.
    var line: String?

    /// The number of calls that are looked at.
    ///
    /// In a debug build more than 24 of them may be the framework's.
    private static let depth = 64
    /// The places that were looked up, by their calls.
    private static let known = Locked<[[UInt]: PlaceOfCall]>([:])
    /// The most places that are remembered.
    private static let limit = 1000

    /// The innermost calls of the current thread, which tell places apart.
    static var calls: [UInt] { Thread.callStackReturnAddresses.prefix(depth).map(\.uintValue) }

    /// The place of the innermost of some calls that is not the framework's.
    ///
    /// - Parameter calls: The return addresses of calls, the innermost first.
    init(of calls: [UInt]) {
        if let known = Self.known.withLock({ $0[calls] }) {
            self = known
            return
        }
        ProgramFile.read { file in
            guard let (name, address) = FunctionTable(file).innermost(of: calls.compactMap(file.address(ofCall:)))
            else {
                return
            }
            function = name
            line = LineTable(file)?.line(of: address)
        }
        let found = self
        Self.known.withLock { if $0.count < Self.limit { $0[calls] = found } }
    }
}
