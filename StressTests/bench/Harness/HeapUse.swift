import Foundation

/// How much of the heap is in use.
enum HeapUse {
    /// The bytes that are allocated at the moment, with what the allocator adds to each piece.
    static var bytes: Int {
        let heap = mallinfo2()
        return Int(heap.uordblks) + Int(heap.hblkhd)
    }

    /// What `make` leaves allocated for each of `count` objects, as long as its result is held.
    static func bytesEach<Result>(of count: Int, _ make: () throws -> Result) rethrows -> Int {
        let before = bytes
        let held = try make()
        return withExtendedLifetime(held) { (bytes - before) / count }
    }
}
