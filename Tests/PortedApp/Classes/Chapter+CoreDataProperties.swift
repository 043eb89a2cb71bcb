// As Xcode has written it, but for @objc and #keyPath.
// swift-format-ignore-file

import CoreData
import Foundation

extension Chapter {

    @nonobjc public class func fetchRequest() -> NSFetchRequest<Chapter> {
        return NSFetchRequest<Chapter>(entityName: "Chapter")
    }

    @NSManaged public var kindValue: Int16
    @NSManaged public var number: Int32
    @NSManaged public var tags: [String]?
    @NSManaged public var text: String?
    @NSManaged public var book: Book?

}

extension Chapter: Identifiable {

}
