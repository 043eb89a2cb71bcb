internal import CStrataThreadLocals
import Foundation
import Observation

/// Finds out whether the current thread is inside of `withObservationTracking`; the library has no function for that.
///
/// Inside, a thread-local variable of the library points to the list of accesses, and outside it is zero. The first use
/// finds the place of that variable, by a comparison of the library's variables inside and outside. Then each thread looks
/// for its own variable once, and reads it at each access.
///
/// If a version of the library keeps the list elsewhere, then no variable is found, and each access counts as tracked.
enum AccessTracking {
    /// An object for an access by which the library makes the variables of the thread.
    private final class Subject: Observable {
        let registrar = ObservationRegistrar()
        let property = 0
    }

    /// The number of the variable among the library's variables; `nil` if it is not found.
    private static let place: Int? = findPlace()

    /// A variable that is never zero, for threads whose variable is not known.
    private nonisolated(unsafe) static let always: UnsafePointer<UInt> = {
        // nonisolated(unsafe): nothing writes to it from now on.
        let word = UnsafeMutablePointer<UInt>.allocate(capacity: 1)
        word.initialize(to: 1)
        return UnsafePointer(word)
    }()

    /// Whether the current thread tracks accesses.
    static var isTracking: Bool {
        // The word is the variable of the thread, and lives as long as the thread.
        guard let word = strata_get_thread_word() else { return lookUp() != 0 }
        return word.pointee != 0
    }

    /// Whether the variable was found, so that not each access counts as tracked.
    static var isReliable: Bool { place != nil }

    /// Finds the variable of the current thread, and returns its value.
    @inline(never)
    private static func lookUp() -> UInt {
        let variables = variables()
        let found = place.flatMap { $0 < variables.count ? variables.words + $0 : nil } ?? always
        strata_set_thread_word(found)
        return found.pointee
    }

    /// The library's variables of the current thread.
    private static func variables() -> (words: UnsafePointer<UInt>, count: Int) {
        let subject = Subject()
        subject.registrar.access(subject, keyPath: \.property)
        let found = strata_thread_locals_of(unsafeBitCast(ObservationRegistrar.self, to: UnsafeRawPointer.self))
        return found.words.map { ($0, found.count) } ?? (always, 0)
    }

    private static func findPlace() -> Int? {
        func values() -> [UInt] {
            let variables = variables()
            return (0..<variables.count).map { variables.words[$0] }
        }
        func tracked() -> [UInt] { withObservationTracking(values) {} }
        // The thread may be inside of tracking already. Then the variable has another value in a second one.
        let outside = values()
        let looks = [(tracked(), values()), (tracked(), values())]
        let places = outside.indices.filter { place in
            looks.allSatisfy { $0[place] != 0 && $0[place] != outside[place] && $1[place] == outside[place] }
        }
        return places.count == 1 ? places[0] : nil
    }
}
