// Xcode has written this file; only @objc and #keyPath were changed.
// swift-format-ignore-file

import CoreData
import Foundation

#if canImport(ObjectiveC)
@objc(Chapter)
#endif
public class Chapter: NSManagedObject {
    public enum Kind: Int16 {
        case text
        case picture
    }

    /// The kind of the chapter, from the attribute that stores it.
    public var kind: Kind {
        get { Kind(rawValue: kindValue) ?? .text }
        set { kindValue = newValue.rawValue }
    }

    /// Counts one more reading of the chapter.
    public func read() {
        readCount += 1
    }

    @NSManaged private var readCount: Int64

    public var timesRead: Int64 { readCount }
}
