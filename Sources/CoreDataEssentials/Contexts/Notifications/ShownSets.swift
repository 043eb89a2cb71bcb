import Foundation

/// The sets of objects that a save has put into notifications so far.
///
/// The event that ends when a save begins and the save itself mostly have the same objects. Their notifications then
/// share a set, so that no object is hashed twice.
///
/// Confined to the context's queue.
struct ShownSets {
    private var shown: [(objects: [NSManagedObject], set: Set<NSManagedObject>)] = []

    /// A set of objects: one that was made before of the same objects in the same order, or a new one.
    mutating func set(of objects: [NSManagedObject]) -> Set<NSManagedObject> {
        if let known = shown.first(where: { $0.objects.hasSameObjects(as: objects) }) { return known.set }
        let set = Set(objects)
        shown.append((objects, set))
        return set
    }
}

extension [NSManagedObject] {
    /// Whether both have the same objects in the same order.
    ///
    /// This compares addresses, and retains no object.
    fileprivate func hasSameObjects(as other: Self) -> Bool {
        guard count == other.count else { return false }
        return withUnsafeBytes { own in
            other.withUnsafeBytes { other in
                guard let start = own.baseAddress, let otherStart = other.baseAddress else { return true }
                return memcmp(start, otherStart, own.count) == 0
            }
        }
    }
}
