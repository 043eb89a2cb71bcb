import CoreData
import Synchronization

/// An instrument that does next to nothing, so that what is measured is the framework's part of it.
final class EventCounter: CoreDataInstrument {
    private let count = Atomic(0)

    func record(_ event: CoreDataEvent) { count.add(1, ordering: .relaxed) }
}

extension FrameworkSide {
    /// What each coordinator is given; set before anything is measured.
    nonisolated(unsafe) static var instrument: EventCounter?
    /// The limit of each coordinator's row caches, if it is not the default; set before anything is measured.
    nonisolated(unsafe) static var rowCacheBytes: Int?
}
