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
    /// What is accessed so that the library makes the variables of the thread.
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

    /// The thread-local key for the variable of the thread, which lives as long as the thread.
    private static let key: pthread_key_t = {
        var key = pthread_key_t()
        let status = pthread_key_create(&key, nil)
        precondition(status == 0, "SwiftData needs a thread-local key, and the process has used up all: \(status)")
        return key
    }()

    /// Whether the current thread tracks accesses.
    static var isTracking: Bool {
        guard let known = pthread_getspecific(key) else { return lookUp().pointee != 0 }
        return UnsafePointer(known.assumingMemoryBound(to: UInt.self)).pointee != 0
    }

    /// Whether accesses outside of tracking are told apart.
    static var isReliable: Bool { place != nil }

    /// Finds the variable of the current thread.
    @inline(never)
    private static func lookUp() -> UnsafePointer<UInt> {
        let variables = variables()
        let found = place.flatMap { $0 < variables.count ? variables.words + $0 : nil } ?? always
        pthread_setspecific(key, found)
        return found
    }

    /// The library's variables of the current thread.
    private static func variables() -> (words: UnsafePointer<UInt>, count: Int) {
        let subject = Subject()
        subject.registrar.access(subject, keyPath: \.property)
        let found = strata_thread_locals_of(unsafeBitCast(ObservationRegistrar.self, to: UnsafeRawPointer.self))
        guard let words = found.words else { return (always, 0) }
        return (UnsafeRawPointer(words).assumingMemoryBound(to: UInt.self), found.count)
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
