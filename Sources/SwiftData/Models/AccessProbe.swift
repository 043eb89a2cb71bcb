import Foundation
import Observation

/// Finds out whether the current thread is inside of `withObservationTracking`, which the library does not say.
///
/// Each thread has a separate probe. An access to the probe's property does nothing outside of tracking. Inside, the
/// list of accesses hashes the key path of the property, and with it an argument of the key path, which notes that. The
/// probe then gets a new registrar, so that nothing stays registered with it.
///
/// If a version of the library hashes no arguments, then the first use finds that out, and each access counts as
/// tracked.
final class AccessProbe: Observable {
    /// The argument of the key path, which notes that it is hashed.
    private struct Argument: Hashable {
        func hash(into hasher: inout Hasher) { AccessProbe.current.isHashed = true }
    }

    private var registrar = ObservationRegistrar()
    private var isHashed = false

    private subscript(argument: Argument) -> Int { 0 }

    // The argument has no state.
    private nonisolated(unsafe) static let property: KeyPath<AccessProbe, Int> = \AccessProbe[Argument()]

    private static let key: pthread_key_t = {
        var key = pthread_key_t()
        let status = pthread_key_create(&key) { probe in
            // The key holds a reference, which it has from `current`.
            if let probe { Unmanaged<AccessProbe>.fromOpaque(probe).release() }
        }
        precondition(status == 0, "SwiftData needs a thread-local key, and the process has used up all: \(status)")
        return key
    }()

    /// The probe of the thread.
    private static var current: AccessProbe {
        if let known = pthread_getspecific(key) { return Unmanaged.fromOpaque(known).takeUnretainedValue() }
        let probe = AccessProbe()
        pthread_setspecific(key, Unmanaged.passRetained(probe).toOpaque())
        return probe
    }

    /// Whether a tracked access to a probe is found.
    private static let isReliable = withObservationTracking {
        current.isTracked
    } onChange: {
    }

    /// Whether the current thread tracks accesses.
    static var isTracking: Bool { current.isTracked || !isReliable }

    private var isTracked: Bool {
        isHashed = false
        registrar.access(self, keyPath: Self.property)
        guard isHashed else { return false }
        registrar = ObservationRegistrar()
        return true
    }
}
