import Foundation

/// The threads that blocks of private contexts run on.
///
/// Dispatch has at most 255 threads for all queues of one quality of service; each quality has its own threads. A block
/// of a child that waits for its parent keeps its thread meanwhile. Suppose that the parent's next block needed one of
/// the same 255 threads, and children that wait occupied all of them: then none would ever go on. So each level of a
/// tree has a different quality. Contexts wait only for those above them, and a root waits for no context. So the
/// threads of a level are free again when the levels above have done their work.
///
/// The quality has no other purpose. The nice values of the levels' threads differ by two, or not at all if the process
/// may not raise its priority.
enum ContextThreads {
    /// The qualities from the root down; deeper levels share the last one.
    private static let qualities: [DispatchQoS] = [.unspecified, .userInitiated, .userInteractive, .utility]

    /// Makes the queue of a context that has `depth` contexts above it.
    static func queue(depth: Int) -> DispatchQueue {
        DispatchQueue(label: "CoreData context", qos: qualities[min(depth, qualities.count - 1)])
    }
}
