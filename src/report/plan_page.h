/* plan_page.h - the text of plan_page.html, as tools/embed-text makes an array of it. */
#ifndef REPORT_PLAN_PAGE_H
#define REPORT_PLAN_PAGE_H

extern const char plan_page_html[];

#endif
