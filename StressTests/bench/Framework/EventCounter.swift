import CoreData
import Synchronization

/// An instrument that does next to nothing, so that only the framework's part of the cost is measured.
final class EventCounter: CoreDataInstrument {
    private let count = Atomic(0)

    func record(_ event: CoreDataEvent) { count.add(1, ordering: .relaxed) }
}

extension FrameworkSide {
    /// The instrument that each coordinator gets; it is set before anything is measured.
    nonisolated(unsafe) static var instrument: EventCounter?
    /// The limit of each coordinator's row caches, if it is not the default; it is set before anything is measured.
    nonisolated(unsafe) static var rowCacheBytes: Int?
}
