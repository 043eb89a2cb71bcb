// As Xcode has written it, but for @objc and #keyPath.
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

    /// What a chapter is, over the attribute that keeps it.
    public var kind: Kind {
        get { Kind(rawValue: kindValue) ?? .text }
        set { kindValue = newValue.rawValue }
    }

    /// Reads the chapter once more.
    public func read() {
        readCount += 1
    }

    @NSManaged private var readCount: Int64

    public var timesRead: Int64 { readCount }
}
