extension Array where Element: AnyObject {
    /// Calls `body` with each element and counts no reference to it, since the array holds all elements during the
    /// call.
    ///
    /// A save goes through its objects about twelve times. Counting references each time was one in twenty of its
    /// instructions.
    @inline(__always)
    func forEachBorrowed(_ body: (Element) throws -> Void) rethrows {
        try withUnsafeBufferPointer { elements in
            for index in elements.indices {
                try Unmanaged.passUnretained(elements[index])._withUnsafeGuaranteedRef { try body($0) }
            }
        }
    }
}
