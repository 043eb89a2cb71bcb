// As Xcode has written it, but for @objc and #keyPath.
// swift-format-ignore-file

import CoreData
import Foundation

/// Its properties are generated (Codegen: Category/Extension).
#if canImport(ObjectiveC)
@objc(Author)
#endif
public class Author: NSManagedObject {
    /// The name as a list sorts it.
    public var sortName: String { name?.split(separator: " ").last.map(String.init) ?? "" }
}
