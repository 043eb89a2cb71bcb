import Foundation

/// The threads that blocks of private contexts run on.
///
/// Dispatch has no more than 255 threads for all queues of one quality of service, and those of each quality have their
/// own. A block of a child that waits for its parent keeps its thread meanwhile. If the parent's next block had to come
/// by one of the same 255, and children waited on all of these, none would ever go on. So each level of a tree has a
/// quality of its own: as waiting goes up only, the threads of a level are free again once those above have done their
/// work, and nobody at the top waits for a context.
///
/// The quality serves for nothing else. Threads of the levels differ by a nice value of two, or not at all where the
/// process may not raise its priority.
enum ContextThreads {
    /// From the top down; trees that are deeper share the last.
    private static let qualities: [DispatchQoS] = [.unspecified, .userInitiated, .userInteractive, .utility]

    /// Makes the queue of a context that has so many others above it.
    static func queue(depth: Int) -> DispatchQueue {
        DispatchQueue(label: "CoreData context", qos: qualities[min(depth, qualities.count - 1)])
    }
}
