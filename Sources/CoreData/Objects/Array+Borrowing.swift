extension Array where Element: AnyObject {
    /// Calls `body` with each element, for which no reference is counted: the array holds them all as long as this runs.
    ///
    /// A save goes through its objects a dozen times. Counting them each time was one in twenty of its instructions.
    @inline(__always)
    func forEachBorrowed(_ body: (Element) throws -> Void) rethrows {
        try withUnsafeBufferPointer { elements in
            for index in elements.indices {
                try Unmanaged.passUnretained(elements[index])._withUnsafeGuaranteedRef { try body($0) }
            }
        }
    }
}
